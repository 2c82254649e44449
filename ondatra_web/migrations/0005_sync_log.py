import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ondatra_web', '0004_exports'),
    ]

    operations = [
        migrations.AddField(
            model_name='recordfile',
            name='log_batch',
            field=models.IntegerField(db_index=True, null=True),
        ),
        migrations.CreateModel(
            name='SyncLog',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('begun', models.IntegerField(default=0)),
                ('done', models.IntegerField(default=0)),
                ('organization', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, to='ondatra_web.organization')),
                ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='ondatra_web.worker')),
            ],
        ),
    ]
