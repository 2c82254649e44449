from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("ondatra_web", "0013_columns"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="started_with",
            field=models.CharField(blank=True, max_length=200),
        ),
    ]
