"""Whether the install has everything that it needs, each part with what to do: for a page, a command and the API."""
