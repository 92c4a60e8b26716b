"""A template of an instrumentation, for an imaginary framework called `toyteam`.

Copy this folder under the name of your framework and follow the recipe in
``docs/develop/recipes.md``. One file stands for each kind of span: ``run``, ``agent``, ``message``,
``tool`` and ``chat``; drop those that your framework has no place for. A framework that needs a
memory beside its spans has a ``state``, one whose data needs parsing has a ``reading``.
"""

from mast_trace_instrumentations.template.patches import ToyTeamInstrumentor

__all__ = ["ToyTeamInstrumentor"]
