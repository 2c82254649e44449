from django.db import migrations, models

from ondatra_web.models.workspaces import new_mask_key


def fail_what_had_failed(apps, schema_editor):
    """Until now a text in `error` said so of a run that works."""
    runs = apps.get_model("ondatra_web", "Run").objects
    runs.filter(status__in=["working", "canceling"]).exclude(error="").update(failed=True)
    runs.filter(status="failed").update(failed=True)


def count_rejected(apps, schema_editor):
    """Rows until now: where old images are among them it is too many, until the chunk is next written."""
    chunks = apps.get_model("ondatra_web", "Chunk").objects
    chunks.filter(rejected_rows__gt=0).update(rejected_records=models.F("rejected_rows"))


def give_mask_keys(apps, schema_editor):
    """Workspaces that were made in the admin site had none."""
    for workspace in apps.get_model("ondatra_web", "Workspace").objects.filter(mask_key=""):
        workspace.mask_key = new_mask_key()
        workspace.save(update_fields=["mask_key"])


class Migration(migrations.Migration):

    dependencies = [
        ('ondatra_web', '0008_api'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='failed',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='run',
            name='confirmed_as',
            field=models.ForeignKey(
                blank=True, null=True, on_delete=models.deletion.SET_NULL, related_name='+', to='ondatra_web.run'
            ),
        ),
        migrations.RemoveField(
            model_name='run',
            name='source_version',
        ),
        migrations.AddField(
            model_name='sync',
            name='mark_commit',
            field=models.CharField(blank=True, max_length=64),
        ),
        migrations.AddField(
            model_name='modelstate',
            name='table_commit',
            field=models.CharField(blank=True, max_length=64),
        ),
        migrations.AddField(
            model_name='messagegroup',
            name='due',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='messagegroup',
            name='beside',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='chunk',
            name='rejected_records',
            field=models.IntegerField(default=0),
        ),
        migrations.RunPython(count_rejected, migrations.RunPython.noop),
        migrations.AlterField(
            model_name='workspace',
            name='mask_key',
            field=models.CharField(default=new_mask_key, editable=False, max_length=64),
        ),
        migrations.RunPython(give_mask_keys, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name='workspace',
            constraint=models.CheckConstraint(condition=~models.Q(mask_key=''), name='has_a_mask_key'),
        ),
        migrations.RunPython(fail_what_had_failed, migrations.RunPython.noop),
    ]
