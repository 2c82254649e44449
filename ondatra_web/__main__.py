"""`python -m ondatra_web COMMAND` is `ondatra COMMAND`."""

from ondatra_web.command_line import ondatra

ondatra()
