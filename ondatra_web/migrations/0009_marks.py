from django.db import migrations, models


def fail_what_had_failed(apps, schema_editor):
    """Until now a text in `error` said so of a run that works."""
    runs = apps.get_model("ondatra_web", "Run").objects
    runs.filter(status__in=["working", "canceling"]).exclude(error="").update(failed=True)
    runs.filter(status="failed").update(failed=True)


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
        migrations.RunPython(fail_what_had_failed, migrations.RunPython.noop),
    ]
