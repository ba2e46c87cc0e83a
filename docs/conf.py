"""How Sphinx builds the documentation; the pages that are computed come from `_ext/generated`."""

from __future__ import annotations

import sys
from importlib import metadata, util
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

project = "bittrue"
author = "The bittrue authors"
copyright = author
release = metadata.version("bittrue")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "generated",
]
exclude_patterns = ["_ext"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# --- text ---
myst_enable_extensions = ["attrs_inline", "colon_fence"]
myst_heading_anchors = 3
# The guides' headings serve GitHub, too: a page may begin with a comment for the tests.
suppress_warnings = ["myst.header"]
highlight_language = "text"
smartquotes = False  # "FP16" and --target are meant as they stand
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_here_doc_delimiter = "EOF"

# --- docstrings ---
default_role = "py:obj"  # `name` in a docstring links where there is such a name, and is code elsewhere
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
autosummary_generate = False
toc_object_entries = False  # hundreds of names in the contents of every page
# Optional packages: their rooms are documented where they are absent, too.
autodoc_mock_imports = [name for name in ("torch", "dask") if util.find_spec(name) is None]
nitpicky = True
nitpick_ignore_regex = [
    ("py:obj", ".*"),  # the default role, see above
    ("py:.*", r"(numpy|np|ml_dtypes|torch|dask|typing|enum|fractions|collections|pathlib)\..*"),
    ("py:class", ".*"),  # types of parameters are words ("array_like, optional")
    ("py:exc", ".*"),  # as are those of what is raised
]

# --- pages ---
html_theme = "furo"
html_title = "bittrue"
html_static_path = ["_static"]
html_css_files = ["bittrue.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

linkcheck_timeout = 10
