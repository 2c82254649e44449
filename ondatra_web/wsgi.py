"""What a WSGI server loads."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ondatra_web.settings")
application = get_wsgi_application()
