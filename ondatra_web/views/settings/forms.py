"""What people write on the pages of the settings."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.forms import BaseUserCreationForm
from django.contrib.auth.models import User
from django.db.models import QuerySet

from ondatra_web.models import Role, Workspace
from ondatra_web.tokens import LONGEST_NAME, SCOPES

ROLES = [(role.value, role.label) for role in Role]
GIVEN = [(role.value, role.label) for role in Role if role != Role.NONE]


def said(form: forms.BaseForm) -> str:
    """All that is wrong, as sentences with their fields."""
    return " ".join(f"{name.replace('_', ' ')}: {one}" for name, found in form.errors.items() for one in found)


class InviteForm(forms.Form):
    """Without an e-mail address the link is passed on by hand; without a workspace the role is the organization's."""

    email = forms.EmailField(required=False)
    role = forms.ChoiceField(choices=GIVEN, initial=Role.VIEWER)
    workspace = forms.ModelChoiceField(queryset=Workspace.objects.none(), required=False)

    def __init__(self, *args: Any, workspaces: QuerySet[Workspace], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["workspace"].queryset = workspaces  # type: ignore[attr-defined]


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=ROLES)


class WorkspaceRoleForm(forms.Form):
    """An empty role gives the workspace the organization's again."""

    workspace = forms.IntegerField()
    role = forms.ChoiceField(choices=[("", ""), *ROLES], required=False)


class JoinForm(BaseUserCreationForm):  # type: ignore[type-arg]  # no type parameters at run time
    """An account of whoever follows an invitation."""

    class Meta:
        model = User
        fields = ("username", "email")


class EmailForm(forms.Form):
    """Links for a new password go to it, so that changing it takes the password."""

    email = forms.EmailField(required=False)
    password = forms.CharField(strip=False)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_password(self) -> str:
        password = str(self.cleaned_data["password"])
        if not self.user.check_password(password):
            raise forms.ValidationError("That is not your password.")
        return password


class TokenForm(forms.Form):
    """An empty number of days stands for ever."""

    name = forms.CharField(max_length=LONGEST_NAME)
    scopes = forms.MultipleChoiceField(choices=list(SCOPES.items()))
    days = forms.IntegerField(required=False, min_value=1, max_value=3_650)


class WorkspaceForm(forms.Form):
    """Which paths are allowed says ondatra_web.workspaces, where it is saved."""

    slug = forms.CharField(max_length=50)
    project = forms.CharField(max_length=1_000)
    env_file = forms.CharField(max_length=1_000, required=False)
    allow_paths = forms.CharField(max_length=20_000, required=False)  # one a line

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(line.strip() for line in self.cleaned_data["allow_paths"].splitlines() if line.strip())
