"""The functions of the dialect. Each family of them registers itself with the registry when it is imported."""

from . import numbers  # isort: split

from . import strings  # isort: split

from . import dates  # isort: split

from . import lists  # isort: split

from . import jsons  # isort: split

from . import aggregates

__all__ = ["aggregates", "dates", "jsons", "lists", "numbers", "strings"]
