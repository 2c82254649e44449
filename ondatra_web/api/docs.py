"""The page that shows the API's schema: Swagger UI, from here and without a script or style in the page."""

from __future__ import annotations

from typing import Any

from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request

from ondatra_web import headers


class Docs(SpectacularSwaggerSplitView):
    template_name = "api/docs.html"

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Its style sheet holds pictures."""
        response = super().finalize_response(request, response, *args, **kwargs)
        response["Content-Security-Policy"] = headers.policy(img_src="'self' data:")
        return response
