"""Sphinx's configuration of the site; ``nox -s docs`` builds it, with warnings as errors."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "mast-trace"
author = "the mast-trace maintainers"
project_copyright = "the mast-trace maintainers, Apache-2.0"
version = release = installed("mast-trace")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "site_extension",
]
exclude_patterns = ["site_extension", "_static"]

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist", "attrs_inline"]
myst_heading_anchors = 4
# Links to files of the repository have a scheme of their own until the site's extension resolves them.
myst_url_schemes = ["http", "https", "mailto", "repository"]

# Docstrings name code between single backquotes.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# No other project's index is loaded, so that the build needs no network.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!mast_trace\b).*"),
    (r"py:.*", r"mast_trace\..*\.[A-Z]"),  # type variables
]

html_theme = "furo"
html_title = "mast-trace"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
_PLAIN_SIDEBAR = {"color-sidebar-link-text--top-level": "var(--color-foreground-primary)"}
html_theme_options = {
    "light_css_variables": {
        **_PLAIN_SIDEBAR,
        "color-brand-primary": "#b3261e",
        "color-brand-content": "#9a3412",
    },
    "dark_css_variables": {
        **_PLAIN_SIDEBAR,
        "color-brand-primary": "#ff8a80",
        "color-brand-content": "#ffb74d",
    },
}

copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
