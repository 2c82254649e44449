"""What a WSGI server loads."""

import os

from django.core.wsgi import get_wsgi_application

from ondatra_web import checks

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ondatra_web.settings")
checks.refuse()
application = get_wsgi_application()
