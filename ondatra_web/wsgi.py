"""What a WSGI server loads."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from ondatra_web import checks
from runtime.store import opening

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ondatra_web.settings")
checks.refuse()
application = get_wsgi_application()
opening.get_ready(settings.ONDATRA.tracking_url)
