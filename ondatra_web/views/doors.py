"""How people come in: sign-in, an invitation, a new password for a lost one."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, views
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from ondatra_web import people, signing_in
from ondatra_web.access import CHOSEN
from ondatra_web.views.settings.forms import JoinForm
from runtime.errors import OndatraError


class SignIn(views.LoginView):
    redirect_authenticated_user = True

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        wait = getattr(self.request, "sign_in_wait", 0)
        answer = self.render_to_response(self.get_context_data(form=form, wait=-(-wait // 60)))
        if wait:
            answer.status_code = 429
            answer["Retry-After"] = str(wait)
        return answer


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    """Whoever is signed in joins by a button; others make an account, or sign in first."""
    found = people.invited(secret)
    if found is None:
        return render(request, "people/no_invitation.html", status=410)
    form = JoinForm(request.POST or None, initial={"email": found.email})
    if request.method == "POST" and (request.user.is_authenticated or form.is_valid()):
        return _joined(request, secret, form)
    # with 200 whatever the form says: what is refused is logged with its address, and this one is a secret
    return render(request, "people/invitation.html", {"invitation": found, "form": form})


def _joined(request: HttpRequest, secret: str, form: JoinForm) -> HttpResponse:
    if not request.user.is_authenticated:
        login(request, form.save(), backend=settings.AUTHENTICATION_BACKENDS[0])
    try:
        member = people.accept(secret, request.user)  # type: ignore[arg-type]  # signed in by now
    except OndatraError as error:
        messages.error(request, str(error))
        return redirect("account")
    request.session[CHOSEN] = member.organization_id
    messages.success(request, f"You belong to {member.organization} now.")
    return redirect("home")


class LostPassword(views.PasswordResetView):
    """Sends a link where there is a server of e-mail, and says so whether or not anybody has the address; else says who
    can help."""

    template_name = "people/lost_password.html"
    email_template_name = "people/lost_password.txt"
    subject_template_name = "people/lost_password_subject.txt"
    extra_context = {"mails": settings.MAIL_IS_SET}

    def form_valid(self, form: Any) -> HttpResponse:
        address = str(self.request.META.get("REMOTE_ADDR", ""))
        if settings.MAIL_IS_SET and not signing_in.too_many(form.cleaned_data["email"], address):
            form.save(
                use_https=self.request.is_secure(),
                email_template_name=self.email_template_name,
                subject_template_name=self.subject_template_name,
                request=self.request,
            )
        return self.render_to_response(self.get_context_data(form=form, sent=settings.MAIL_IS_SET))


class NewPassword(views.PasswordResetConfirmView):
    """The link of the e-mail, or of an admin. Every session of the person ends with the old password."""

    template_name = "people/new_password.html"

    def form_valid(self, form: Any) -> HttpResponse:
        form.save()
        people.tell_everywhere(form.user, form.user, "reset_password", {})
        self.request.session.pop("_password_reset_token", None)
        messages.success(self.request, "The password is changed. Sign in with it.")
        return redirect("login")
