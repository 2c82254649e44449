"""A fresh install has organization 1 and workspace `default`, whose project folder is the one of the install."""
import secrets

from django.conf import settings
from django.db import migrations


def create(apps, schema_editor):
    organizations, workspaces = apps.get_model("ondatra_web", "Organization"), apps.get_model("ondatra_web", "Workspace")
    if organizations.objects.exists() or workspaces.objects.filter(slug="default").exists():
        return
    # no explicit id: a fresh database gives 1, and PostgreSQL's sequence moves on
    organization = organizations.objects.create(name="Default")
    workspaces.objects.create(organization=organization, slug="default", project_dir=str(settings.ONDATRA.project_dir), mask_key=secrets.token_hex(32))


class Migration(migrations.Migration):

    dependencies = [
        ("ondatra_web", "0001_tables"),
    ]

    operations = [
        migrations.RunPython(create, migrations.RunPython.noop),
    ]
