
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ondatra_web', '0003_buckets'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Export',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('format', models.CharField(max_length=10)),
                ('filter', models.JSONField(default=dict)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('working', 'Working'), ('done', 'Done'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('removed', 'Removed')], default='queued', max_length=10)),
                ('wanted', models.BigIntegerField(null=True)),
                ('rows', models.BigIntegerField(default=0)),
                ('size', models.BigIntegerField(default=0)),
                ('error', models.TextField(blank=True)),
                ('lease', models.IntegerField(default=0)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('started_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='ondatra_web.worker')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='ondatra_web.run')),
            ],
        ),
    ]
