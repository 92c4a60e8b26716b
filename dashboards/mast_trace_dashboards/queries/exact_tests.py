"""SQL of exact tests and intervals that named queries share.

The tails are sums of point probabilities, each from the one before by their ratio, from the count that was
seen on and away from the mean: some thousand terms where a sum over all counts would have millions.
"""

from __future__ import annotations

from typing import Final

# Beyond twelve standard deviations and sixty counts, nothing is left that a Float64 could show.
_REACH: Final = "toInt64(12 * sqrt(least(n, m))) + 60"
_FAR: Final = f"""exp(lgamma(m + 1) - lgamma(k + 1) - lgamma(m - k + 1)
      + lgamma(a - m + 1) - lgamma(n - k + 1) - lgamma(a - m - n + k + 1)
      - lgamma(a + 1) + lgamma(n + 1) + lgamma(a - n + 1)
      + log(1 + arraySum(arrayMap(x -> exp(x), arrayCumSum(arrayMap(
          j -> log((m - j) * (n - j) / ((j + 1) * (a - m - n + j + 1))),
          range(k, least(n, m, k + {_REACH}))))))))"""


def at_least(seen: str, marked: str, drawn: str, all_: str) -> str:
    """Return the SQL of one-sided tests of Fisher: arrays of counts become an array of probabilities.

    Each is the probability of at least ``seen`` marked ones among ``drawn`` of ``all_``, of which ``marked``
    are marked (hypergeometric distribution; R. A. Fisher, "The Logic of Inductive Inference", 1935).

    Args:
        seen: SQL of an array of counts.
        marked: likewise.
        drawn: likewise.
        all_: likewise.
    """
    arrays = ", ".join(f"arrayMap(i -> toInt64(i), {each})" for each in (seen, marked, drawn, all_))
    # Below the mean it is 1 without the tail of the unmarked ones among the drawn, at least n - k + 1 of them.
    return f"""arrayMap((k, m, n, a) -> greatest(0., least(1., multiIf(
      k <= greatest(0, n + m - a), 1., k > least(n, m), 0.,
      if(k * a > m * n, 0, 1) + if(k * a > m * n, 1, -1) * arrayMap((k, m) -> {_FAR},
        [if(k * a > m * n, k, n - k + 1)], [if(k * a > m * n, m, a - m)])[1]))), {arrays})"""


def evidence(seen: str, tried: str, rate: str) -> str:
    """Return the SQL of minus the decimal logarithm of a binomial tail, as the alerts compare it.

    It is of the probability of at least ``seen`` of ``tried`` at ``rate``, exact where ``seen`` is above the mean,
    and 0 elsewhere; at most 300.

    Args:
        seen: SQL of a count.
        tried: likewise.
        rate: SQL of a rate above 0 and below 1.
    """
    return f"""arrayMap((k, n, p) -> if(k <= n * p, 0., least(300., -(
      lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log(1 - p)
      + log(1 + arraySum(arrayMap(x -> exp(x), arrayCumSum(arrayMap(
          j -> log((n - j) / (j + 1) * p / (1 - p)),
          range(k, least(n, k + toInt64(12 * sqrt(n)) + 60))))))))
      / log(10))), [toInt64({seen})], [toInt64({tried})], [toFloat64({rate})])[1]"""


def with_holm(rows: str, probability: str, corrected: str, family: str = "") -> str:
    """Return rows with a probability that is corrected for as many tests as there are rows, NULLs left out.

    S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics, 1979.

    Args:
        rows: a SELECT.
        probability: its Nullable column.
        corrected: name of the new column.
        family: columns of whose values each has its own family of tests; all rows are one without it.
    """
    of = f"PARTITION BY {family} " if family else ""
    by = f"{of}ORDER BY {probability} ASC NULLS LAST"
    return f"""SELECT * EXCEPT (Tests, Place), if(isNull({probability}), NULL, least(1.,
      max({probability} * (Tests - Place + 1))
        OVER ({by} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))) AS {corrected}
  FROM (
    SELECT *, count({probability}) OVER ({of}) AS Tests, row_number() OVER ({by}) AS Place
    FROM ({rows})
  )"""


_Z: Final = 1.959964


def wilson(seen: str, tried: str) -> tuple[str, str]:
    """Return the SQL of both ends of a share's 95 % interval; NULL where nothing was tried.

    E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", 1927.
    """
    middle = f"({seen} + {_Z**2 / 2:.6f})"
    half = f"({_Z} * sqrt({seen} * ({tried} - {seen}) / {tried} + {_Z**2 / 4:.6f}))"
    low, high = (f"({middle} {sign} {half}) / ({tried} + {_Z**2:.6f})" for sign in "-+")
    return (
        f"if({tried} = 0, NULL, greatest(0., {low}))",
        f"if({tried} = 0, NULL, least(1., {high}))",
    )
