"""The README's parts that are measured: each stands between two marks that name its benchmark."""

from __future__ import annotations


def replace_part(text: str, name: str, part: str) -> str:
    """Return ``text`` with another part between the marks of ``name``; at its end, if there are no such marks.

    >>> print(replace_part("before\\n<!-- on_ray -->\\nold\\n<!-- end of on_ray -->\\nafter", "on_ray", "new"))
    before
    <!-- on_ray -->
    new
    <!-- end of on_ray -->
    after
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, found, rest = text.partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        before, after = f"{text.rstrip()}\n\n", "\n"
    return f"{before}{begin}\n{part}\n{end}{after}"
