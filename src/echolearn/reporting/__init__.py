"""Tables, figures and HTML pages, made from plain numbers: nothing here knows a network or a corpus."""
