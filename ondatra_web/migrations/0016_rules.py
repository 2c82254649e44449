from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("ondatra_web", "0015_started_with")]

    operations = [
        migrations.AddField("run", "rules", models.JSONField(default=dict)),
    ]
