from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("ondatra_web", "0014_saved_filters"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="started_with",
            field=models.CharField(blank=True, max_length=200),
        ),
    ]
