"""Arrays as pictures: pure functions from an array to pixels, and to a page of them.

    pixels      any item of the element types → 8 bits, in any smaller size
    palettes    the table of colour maps
    colours     8 bits → colour: how a picture is looked at
    tiles       what of an array is drawn, in which order, with which captions
    font        what captions are written with
    contact     tiles → a PNG contact sheet: `sheet`
    notebook    facts, a sheet and bars → the HTML that a notebook shows

The room lies below `array` and `dataset`, so that these can show themselves in a notebook. It
takes array-likes, opens nothing and prints nothing.
"""

__all__: list[str] = []
