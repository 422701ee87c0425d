"""The wing that looks: items in a terminal.

    terminal    tiles → text, a row of pictures at once: `show`
    charts      values → bars
    cells       pictures as character cells: the table MODES
    words       what the options of drawing may say
    graphics    pictures for terminals that show pixels: kitty, sixel

What a picture is, and the contact sheet, lie in the room `sheets` below. Nothing here opens a
file or prints.
"""

__all__: list[str] = []
