"""Formulas as MathML, which browsers show without a script."""

from latex2mathml.converter import convert


def _inline(self, node):
    self.body.append(convert(node.astext()))
    raise _skip()


def _block(self, node):
    self.body.append(convert(node.astext(), display="block"))
    raise _skip()


def _skip():
    from docutils.nodes import SkipNode

    return SkipNode()


def setup(app):
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
