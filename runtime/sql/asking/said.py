"""What DuckDB says, as a message for people: without excerpts, settings and endless lists."""

from __future__ import annotations

import re

#: Characters of one line of a message.
LONGEST = 300


class GateError(Exception):
    """DuckDB's refusal: its message without the excerpt, and the line it names (None if it names none)."""

    def __init__(self, text: str) -> None:
        lines = re.findall(r"^LINE (\d+): ", text, re.M)
        self.line = int(lines[-1]) if lines else None
        self.message = brief(text)
        super().__init__(self.message)


def brief(text: str) -> str:
    """DuckDB's message in a few lines: without the excerpt of the SQL, the reader's settings, the row's other values
    and endless lists."""
    file = re.search(r"^\s*file = (.+)$", text, re.M)
    message = re.split(r"\n+LINE \d+: |\n\s*file = |\n\s*Candidate functions:", text)[0].strip()
    message = re.sub(r"^(Binder|Parser|Catalog|Invalid Input|IO|Conversion|Not implemented) Error: ", "", message)
    message = re.sub(r"\n(Original Line: |Column \S+ is being converted |This type was auto-detected ).*", "", message)
    message = re.sub(r"\n\* (Use a COPY|Check whether the null|Disable the parser).*", "", message)
    if file:
        message = re.sub(r"^CSV Error on Line: (\d+)", lambda m: f"{file[1].strip()}, line {m[1]}:", message)
    message = re.sub(
        r"\nThe search space used was:.*",
        "\nName its delim, quote, escape, skip, encoding or compression",
        message,
        flags=re.S,
    )
    message = re.sub(r"\s*It is possible that the encoding exists.*", "", message)
    message = message.replace(
        "Set the correct encoding, if available, to read this CSV File (e.g., encoding='UTF-16')",
        "name its encoding, such as encoding = 'latin-1' or encoding = 'utf-16'",
    )
    return "\n".join(
        part if len(part) <= LONGEST else f"{part[:LONGEST]}…" for part in message.splitlines() if part.strip()
    )


def one_line(message: str) -> str:
    parts = [part.strip().removeprefix("* ") for part in message.splitlines() if part.strip()]
    return "".join(part + ("" if part is parts[-1] else " " if part[-1] in ":.," else "; ") for part in parts)
