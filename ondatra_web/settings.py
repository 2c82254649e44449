"""Django's settings, each from the environment with a default that runs on one machine."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import environ

from runtime import config
from runtime.custody import private
from runtime.custody.redact import everywhere

#: Holds templates/, static/ and docs/: the package itself where it was installed from a wheel, the top of a clone.
PACKAGE = Path(__file__).resolve().parent
PAGES = PACKAGE if (PACKAGE / "templates").is_dir() else PACKAGE.parent
DOCS = PAGES / "docs"
ONDATRA = config.read()  # ondatra_web.checks tells what of it is wrong
private.folder(ONDATRA.data_dir)
env = environ.Env()


def _kept_secret() -> str:
    """A key made at the first start and kept beside the database, so that sessions survive a restart."""
    path = ONDATRA.data_dir / "secret_key"
    try:
        with open(path, "x", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
            file.write(secrets.token_urlsafe(50))
    except FileExistsError:
        pass
    return path.read_text().strip()


SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY") or _kept_secret()
DEBUG = env.bool("DJANGO_DEBUG", default=False)
ALLOWED_HOSTS = env.list("DJANGO_ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("DJANGO_CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "ondatra_web.apps.SupportConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "ondatra_web.apps.OndatraConfig",
]
MIDDLEWARE = [
    "ondatra_web.headers.middleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "ondatra_web.urls"
WSGI_APPLICATION = "ondatra_web.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [PAGES / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

SQLITE = f"sqlite:///{ONDATRA.data_dir / 'ondatra.sqlite3'}"
WRONG_OF_DJANGO = config.wrong_of_django(os.environ)
DATABASES = {
    "default": env.db_url_config(SQLITE)
    if any(w.name == "DATABASE_URL" for w in WRONG_OF_DJANGO)
    else env.db("DATABASE_URL", default=SQLITE)
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    private.file(Path(DATABASES["default"]["NAME"]))
    # WAL lets pages read while a run writes; IMMEDIATE takes the write lock at BEGIN, so no transaction
    # fails half way with "database is locked" before it waited: sqlite:///FILE?timeout=SECONDS says how long.
    wait = int(DATABASES["default"].get("OPTIONS", {}).get("timeout", 30))
    DATABASES["default"]["OPTIONS"] = {
        "timeout": wait,
        "transaction_mode": "IMMEDIATE",
        "init_command": f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout={wait * 1000};",
    }
#: E-mail: without a server of it, links are passed on by hand, and alerts are written where their worker writes.
_mail_url = "" if any(w.name == "EMAIL_URL" for w in WRONG_OF_DJANGO) else os.environ.get("EMAIL_URL", "").strip()
MAIL_IS_SET = bool(_mail_url)
_mail = env.email_url_config(_mail_url or "consolemail://")
EMAIL_BACKEND = _mail["EMAIL_BACKEND"]
EMAIL_HOST = _mail.get("EMAIL_HOST") or "localhost"
EMAIL_HOST_USER = _mail.get("EMAIL_HOST_USER") or ""
EMAIL_HOST_PASSWORD = _mail.get("EMAIL_HOST_PASSWORD") or ""
EMAIL_USE_TLS = bool(_mail.get("EMAIL_USE_TLS"))
EMAIL_USE_SSL = bool(_mail.get("EMAIL_USE_SSL"))
EMAIL_PORT = _mail.get("EMAIL_PORT") or (465 if EMAIL_USE_SSL else 587 if EMAIL_USE_TLS else 25)
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = os.environ.get("EMAIL_FROM", "").strip() or "ondatra@localhost"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
AUTHENTICATION_BACKENDS = ["ondatra_web.signing_in.Backend"]
SESSION_COOKIE_AGE = 7 * 24 * 3600  # from the sign-in on, however much a session is used
PASSWORD_RESET_TIMEOUT = 24 * 3600
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
STATIC_URL = "static/"
STATICFILES_DIRS = [PAGES / "static"]
STATIC_ROOT = ONDATRA.project_dir / "staticfiles"
WHITENOISE_USE_FINDERS = True
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"  # addresses hold identifiers of records
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_621_440  # of any request's body, which the server and ondatra_web.headers hold to
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True

# Behind a proxy that speaks TLS nothing goes without it, for a year.
BEHIND_TLS = bool(ONDATRA.tls_proxy)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = SECURE_HSTS_INCLUDE_SUBDOMAINS = BEHIND_TLS
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if BEHIND_TLS else 0
#: Whether browsers ship with a whole domain as TLS only is for that domain's owner to say, not for a program on it.
SILENCED_SYSTEM_CHECKS = ["security.W021"]

REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_AUTHENTICATION_CLASSES": [],  # ondatra_web.api.base.Api names its own
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_THROTTLE_RATES": {"token": f"{ONDATRA.api_rate}/min"},
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "EXCEPTION_HANDLER": "ondatra_web.api.errors.handler",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Ondatra",
    "VERSION": "1",
    "DESCRIPTION": "Syncs, their runs and every record that was sent; shaped like Census's API where it has the thing.",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "RunStatusEnum": "ondatra_web.models.runs.Run.Status",
        "ExportStatusEnum": "ondatra_web.models.records.Export.Status",
        "SuccessEnum": ["success"],
        "ErrorEnum": ["error"],
        "AlertTypeEnum": "ondatra_web.models.alerts.AlertKind",
        "AlertLevelEnum": "ondatra_web.models.alerts.AlertLevel",
        "ChannelKindEnum": "ondatra_web.models.alerts.AlertChannel.Kind",
        "DeliveryStatusEnum": "ondatra_web.models.alerts.AlertDelivery.Status",
        "AlertStateEnum": "ondatra_web.api.alert_shapes.STATES",
        "HealthStateEnum": ["ok", "warning", "bad"],
    },
}
if ONDATRA.redis_url:  # workers of the web share the counts of the rate limit
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": ONDATRA.redis_url}}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "ondatra_web.redaction.LineFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {"ondatra": {"level": "INFO", "handlers": ["stderr"], "propagate": False}},
}
DEFAULT_EXCEPTION_REPORTER = "ondatra_web.redaction.Reporter"
DEFAULT_EXCEPTION_REPORTER_FILTER = "ondatra_web.redaction.ReporterFilter"
for secret in (SECRET_KEY, EMAIL_HOST_PASSWORD, DATABASES["default"].get("PASSWORD"), *ONDATRA.secrets):
    everywhere.add(secret or "")
