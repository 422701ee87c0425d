"""The local page: all items of a place in the browser.

    serving     a place → a server on loopback, its token, its end: `view`
    places      what a place holds, as exhibits that can be chosen
    exhibit     one of them: items, labels, what is wrong with them
    figures     statistics of every item, once, in the background
    expression  `label == 3 and ink > 0.2`, understood and never executed
    order       which items are shown, and in which order
    journal     labels that were given anew, kept beside the file
    saving      what is written: a new pair, a sheet
    guard       who may ask: token, host, origin; what a browser may do with the answer
    routes      the requests, a function each
    page        the page itself; and the page that needs no server

The page is plain HTML, CSS and JavaScript in `static/`: no build, no outside address.
"""

from .serving import view

__all__ = ["view"]
