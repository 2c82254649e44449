
"""Roles of a workspace, invitations; owners became admins, members operators, and viewers stay what they were."""
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


BECOMES = {"owner": "admin", "member": "operator"}


def roles(apps, schema_editor):
    memberships = apps.get_model("ondatra_web", "Membership")
    for before, now in BECOMES.items():
        memberships.objects.filter(role=before).update(role=now)


def roles_before(apps, schema_editor):
    memberships = apps.get_model("ondatra_web", "Membership")
    for before, now in BECOMES.items():
        memberships.objects.filter(role=now).update(role=before)
    memberships.objects.filter(role__in=["none", "metadata_viewer"]).delete()  # they would see more than they may


def names(apps, schema_editor):
    users = apps.get_model(settings.AUTH_USER_MODEL)
    lines = apps.get_model("ondatra_web", "AuditLog").objects.filter(user_id=models.OuterRef("pk"))
    audit = apps.get_model("ondatra_web", "AuditLog")
    for user in users.objects.filter(models.Exists(lines)):
        audit.objects.filter(user=user, who="").update(who=user.username)


class Migration(migrations.Migration):

    dependencies = [
        ('ondatra_web', '0009_marks'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('none', 'No access'), ('metadata_viewer', 'Metadata viewer'), ('viewer', 'Viewer'), ('operator', 'Operator'), ('admin', 'Admin')], max_length=20)),
                ('email', models.EmailField(blank=True, max_length=254)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('expires_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='WorkspaceRole',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('none', 'No access'), ('metadata_viewer', 'Metadata viewer'), ('viewer', 'Viewer'), ('operator', 'Operator'), ('admin', 'Admin')], max_length=20)),
            ],
        ),
        migrations.AddField(
            model_name='auditlog',
            name='sync',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='ondatra_web.sync'),
        ),
        migrations.AddField(
            model_name='auditlog',
            name='who',
            field=models.CharField(blank=True, max_length=200),
        ),
        migrations.AlterField(
            model_name='membership',
            name='role',
            field=models.CharField(choices=[('none', 'No access'), ('metadata_viewer', 'Metadata viewer'), ('viewer', 'Viewer'), ('operator', 'Operator'), ('admin', 'Admin')], default='viewer', max_length=20),
        ),
        migrations.AddIndex(
            model_name='auditlog',
            index=models.Index(fields=['organization', '-id'], name='audit_of_an_organization'),
        ),
        migrations.AddIndex(
            model_name='auditlog',
            index=models.Index(fields=['organization', 'at'], name='audit_by_time'),
        ),
        migrations.AddIndex(
            model_name='auditlog',
            index=models.Index(fields=['organization', 'who', '-id'], name='audit_by_person'),
        ),
        migrations.AddField(
            model_name='invitation',
            name='created_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='invitation',
            name='organization',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='ondatra_web.organization'),
        ),
        migrations.AddField(
            model_name='invitation',
            name='workspace',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to='ondatra_web.workspace'),
        ),
        migrations.AddField(
            model_name='workspacerole',
            name='membership',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='workspace_roles', to='ondatra_web.membership'),
        ),
        migrations.AddField(
            model_name='workspacerole',
            name='workspace',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='ondatra_web.workspace'),
        ),
        migrations.AddConstraint(
            model_name='workspacerole',
            constraint=models.UniqueConstraint(fields=('membership', 'workspace'), name='one_role_a_workspace'),
        ),
        migrations.RunPython(roles, roles_before),
        migrations.RunPython(names, migrations.RunPython.noop),
    ]
