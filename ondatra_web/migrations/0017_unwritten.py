from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("ondatra_web", "0016_rules")]

    operations = [
        migrations.AddIndex("run", models.Index(fields=["sync"], condition=Q(tracking="pending"), name="run_pending")),
        migrations.AddIndex(
            "delivery", models.Index(fields=["status"], condition=Q(status="sealed"), name="delivery_sealed")
        ),
    ]
