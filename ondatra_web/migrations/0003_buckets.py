from django.db import migrations, models
import django.db.models.deletion
import django.utils.timezone
import ondatra_web.models


def fill(apps, schema_editor):
    """Each organization its own, which a default in the column cannot give."""
    for organization in apps.get_model("ondatra_web", "Organization").objects.all():
        organization.external_id = ondatra_web.models.new_external_id()
        organization.save(update_fields=["external_id"])


class Migration(migrations.Migration):

    dependencies = [("ondatra_web", "0002_first_organization")]

    operations = [
        migrations.AddField("organization", "external_id", models.CharField(max_length=40, default=ondatra_web.models.new_external_id, editable=False)),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.CreateModel(
            name="Bucket",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("bucket", models.CharField(max_length=255)),
                ("prefix", models.CharField(blank=True, max_length=500)),
                ("region", models.CharField(max_length=50)),
                ("endpoint", models.CharField(blank=True, max_length=500)),
                ("role_arn", models.CharField(blank=True, max_length=300)),
                ("access_key", models.CharField(blank=True, max_length=200)),
                ("secret", models.TextField(blank=True, editable=False)),
                ("in_use", models.BooleanField(default=False)),
                ("retention_days", models.IntegerField(blank=True, null=True)),
                ("saved_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("checked_at", models.DateTimeField(blank=True, null=True)),
                ("problem", models.TextField(blank=True)),
                ("organization", models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="ondatra_web.organization")),
            ],
            options={"constraints": [
                models.UniqueConstraint(fields=("endpoint", "bucket"), name="one_owner_a_bucket"),
                models.UniqueConstraint(fields=("organization",), condition=models.Q(("in_use", True)), name="one_bucket_in_use")]},
        ),
        migrations.AddField("run", "bucket", models.ForeignKey(
            blank=True, null=True, on_delete=django.db.models.deletion.RESTRICT, to="ondatra_web.bucket")),
    ]
