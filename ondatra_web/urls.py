from django.contrib import admin
from django.contrib.auth import views as auth_views
from django.urls import include, path
from django.views.generic import RedirectView

from ondatra_web.views import downloads, exports, finding, home, models, records, retry, run, store, syncs
from ondatra_web.views.settings import account, audit

urlpatterns = [
    path("", home.home, name="home"),
    path("find/", finding.find, name="find"),
    path("syncs/", syncs.index, name="syncs"),
    path("syncs/<int:sync_id>/", syncs.sync, name="sync"),
    path("syncs/<int:sync_id>/start/", syncs.start, name="start_run"),
    path("syncs/<int:sync_id>/discard/", syncs.discard, name="discard"),
    path("runs/<int:run_id>/", run.run, name="run"),
    path("runs/<int:run_id>/live/", run.live, name="run_live"),
    path("runs/<int:run_id>/cancel/", run.cancel, name="cancel_run"),
    path("runs/<int:run_id>/confirm/", run.confirm, name="confirm_run"),
    path("runs/<int:run_id>/records/", records.records, name="records"),
    path("runs/<int:run_id>/records/download/", downloads.download, name="download_records"),
    path("runs/<int:run_id>/retry/", retry.retry, name="retry_run"),
    path("runs/<int:run_id>/records/export/", exports.start, name="start_export"),
    path("exports/<int:export_id>/", exports.export, name="export"),
    path("exports/<int:export_id>/live/", exports.live, name="export_live"),
    path("exports/<int:export_id>/file/", exports.file, name="export_file"),
    path("exports/<int:export_id>/cancel/", exports.cancel, name="cancel_export"),
    path("models/", models.index, name="models"),
    path("models/lineage/", models.lineage, name="lineage"),
    path("models/<int:state_id>/", models.model, name="model"),
    path("store/", store.index, name="stores"),
    path("store/<int:organization_id>/", store.store, name="store"),
    path("store/<int:organization_id>/save/", store.save, name="save_bucket"),
    path("store/<int:organization_id>/install/", store.use_install, name="use_install_store"),
    path("store/<int:organization_id>/buckets/<int:bucket_id>/", store.change, name="change_bucket"),
    path("settings/", RedirectView.as_view(pattern_name="account"), name="settings"),
    path("settings/account/", account.account, name="account"),
    path("settings/account/password/", account.change_password, name="change_password"),
    path("settings/audit/", audit.log, name="audit_log"),
    path("settings/audit/export/", audit.export, name="export_audit_log"),
    path("login/", auth_views.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", auth_views.LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("api/", include("ondatra_web.api.urls")),
]
