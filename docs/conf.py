"""Settings of the documentation site, docs/_build/html. Nothing is fetched to build or to read it."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs" / "_extensions"), str(ROOT / "tests" / "support")]

from echolearn import __version__  # noqa: E402

project = "echolearn"
author = "The echolearn developers"
copyright = f"2026, {author}"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "api_reference",  # every public name
    "command_line",  # every command
    "executed_blocks",  # Python in pages, run, with what it prints
    "mathml",  # formulas without a script
    "repository_links",  # links of pages to files of the repository
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = [
    "_build",
    "_extensions",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
]
suppress_warnings = ["config.cache", "sphinx_gallery.config"]  # no pages of who uses what
nitpicky = False
default_role = "literal"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 4

autodoc_mock_imports = ["sktime", "aeon"]  # adapters are documented without these libraries
autodoc_typehints = "none"  # numpydoc has them
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"  # the list at the right is narrow
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_use_plots = False

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_.*\.py$",
    "ignore_pattern": r"__init__\.py",
    "copyfile_regex": r"index\.rst",  # sections with thumbnails, each example once
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 0,
    "remove_config_comments": True,
    "image_srcset": ["2x"],
    "capture_repr": (),
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
    "parallel": True,  # as many examples at a time as sphinx -j says
}

html_theme = "pydata_sphinx_theme"
html_title = "echolearn"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": f"echolearn {version}"},
    "navigation_depth": 3,
    "show_toc_level": 2,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "back_to_top_button": True,
    "secondary_sidebar_items": {"[!g]**": ["page-toc"], "gallery/*": []},  # the gallery needs the width
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
