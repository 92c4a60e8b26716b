"""The phrases with which a text addresses the judge of a run, in several languages.

Each phrase is listed with keys; the letters of every text that it matches hold one of them. Searching
keys is many times faster than trying the phrase at every character, and every text of every run is
searched.
"""

from __future__ import annotations

import re

_JUDGE = r"(?:auditor|judge|evaluator|grader|assessor)"
_RUN = r"(?:run|trace|trajectory|transcript|execution)"
_THIS_RUN = "thisrun,thistra,thisexecution"
_A_RUN = f"{_THIS_RUN},therun,thetra,theexecution,wholerun,wholetra,wholeexecution,entirerun,entiretra,entireexecution"
_PASSED = r"(?:succe\w+|pass(?:ed|ing)?|correct|flawless|perfect|fault-?less)"

_ENGLISH = (
    (
        "ignore,disregard,forget,override",
        r"""(?:ignore|disregard|forget|override)\s+(?:(?:all|any|every|the|your|these|those|of)\s+)*
        (?:previous|prior|above|earlier|preceding|system|other|foregoing)\s+
        (?:\w+\s+)?(?:instruction|rule|prompt|direction|guideline)s?\b""",
    ),
    (
        "auditor,judge,evaluator,grader,assessor",
        rf"""(?:note|attention|message|instructions?|hint|reminder)\s*(?:to|for|,|:)\s*(?:the\s+|any\s+)?
        (?:\w+\s+)?{_JUDGE}\b
        (?=.{{0,120}}\b(?:agents|{_RUN}|verdict|succe\w+|failure\s+modes?|failures)\b)""",
    ),
    (
        "auditor,judge,evaluator,grader,assessor",
        rf"""\b{_JUDGE}s?\s*[,:]\s*(?:please\s+)?
        (?:you\s+must|report|mark|rate|score|answer|output|say|declare|conclude|set|ignore|return)\b
        (?=.{{0,120}}\b(?:{_RUN}|succe\w+|failures?|flawless|passed|verdict|as\s+a\s+pass)\b)""",
    ),
    (
        "auditor,judge,evaluator,grader,assessor",
        rf"""\b{_JUDGE}s?\s*[,:].{{0,80}}\bthis\s+{_RUN}\b""",
    ),
    (
        _A_RUN,
        rf"""(?:mark|rate|score|classify|report|declare|judge|grade)\s+(?:this|the)\s+
        (?:whole\s+|entire\s+)?{_RUN}\s+(?:(?:as|to\s+be|is)\s+)?(?:a\s+|an\s+)?
        (?:\w+\s+)?{_PASSED}\b""",
    ),
    (
        "evaluat,judg,grad,audit",
        rf"""(?:whoever|anyone|(?:any|the)\s+(?:model|llm|ai))\s+(?:\w+\s+){{0,3}}
        (?:evaluat|judg|grad|audit)\w+\s+(?:this|the)\s+(?:{_RUN}|conversation|log|record)\b""",
    ),
    (
        "evaluating,judging,grading,auditing",
        rf"""if\s+you(?:\s+are|'re)\s+(?:an?\s+)?(?:\w+\s+){{0,3}}(?:evaluating|judging|grading|auditing)\s+
        (?:this|the)\s+(?:{_RUN}|conversation|log|record)\b""",
    ),
    (
        "verdict,judgement,judgment",
        r"""(?:override|overrule|change|set|flip)\s+(?:the|your)\s+(?:verdict|judge?ment)\s+(?:to|as)\b""",  # codespell:ignore
    ),
    (
        "failuremode",
        r"""(?:do\s+not|don't|never)\s+(?:report|flag|list|mention)\s+(?:any\s+)?failure\s+modes?\b""",
    ),
    (
        _THIS_RUN,
        rf"""(?:human|expert|annotator|ground\s+truth|developers?)\b.{{0,60}}\bthis\s+{_RUN}\b
        .{{0,30}}\b{_PASSED}\b""",
    ),
    (
        _THIS_RUN,
        rf"""\bthis\s+{_RUN}\b.{{0,60}}\b(?:verified|confirmed|approved|validated)\s+by\s+
        (?:\w+\s+){{0,3}}(?:humans?|experts?|annotators?)\b""",
    ),
    (
        "failureprobability,flipprobability,usesonlyearlier",
        r"""["']?(?:failure_probability|flip_probability|uses_only_earlier_information)["']?\s*[:=]""",
    ),
    (
        "outcomesuccess",
        r"""["']outcome["']\s*:\s*["']success["']\s*,\s*["'](?:reason|points)["']\s*:""",
    ),
    (
        "endrecord,endtask,endstep,endpoints",
        r"""<<\s*end\s+(?:record|task|step|points)\b""",
    ),
    (
        "imstart,startheaderid,startofturn",
        rf"""<(?:\|(?:im_start|start_header_id)\||start_of_turn)>\s*system\b .{{0,200}} \b(?:{_RUN}|verdict|judge|auditor)\b""",
    ),
)
_OTHERS = (
    (
        "anweisung,instruktion,regel,befehl",
        r"""(?:ignorier|vergiss|vergesst|missacht)\w*\b.{0,30}\b(?:vorherig|bisherig|vorangegangen|obig|früher|fruher)\w*
        .{0,20}\b(?:anweisung|instruktion|regel|befehl)""",
    ),
    (
        "lauf",
        r"""(?:bewerte|werte|markiere|stufe)\w*\s+(?:diesen|den)\s+(?:\w+\s+)?(?:lauf|durchlauf)\b.{0,20}\bals\b""",
    ),
    (
        "instrucciones",
        r"""(?:ignor|olvid|desestim)\w*\b.{0,30}\binstrucciones\b.{0,20}\b(?:anterior|previa)""",
    ),
    (
        "ejecuci",
        r"""(?:marca|califica|considera)\w*\s+(?:esta|la)\s+ejecuci[oó]n\s+como\b""",
    ),
    (
        "ignor,esque,desconsider",
        r"""(?:ignor|esque[cç]|desconsider)\w*\b.{0,30}\binstru[cç][oõ]es\b.{0,20}\b(?:anterior|pr[eé]via)""",
    ),
    (
        "ignor,oubli",
        r"""(?:ignor|oubli)\w*\b.{0,30}\b(?:instructions|consignes)\b.{0,20}\b(?:pr[eé]c[eé]dente|ant[eé]rieure)""",
    ),
    (
        "cette",
        r"""(?:marqu|not|[eé]valu|consid[eè]r)\w*\s+cette\s+ex[eé]cution\s+comme\b""",  # codespell:ignore
    ),
    (
        "istruzioni",
        r"""(?:ignor|dimentic)\w*\b.{0,30}\bistruzioni\b.{0,20}\b(?:precedent|anterior)""",
    ),
    (
        "negeer,vergeet",
        r"""(?:negeer|vergeet)\b.{0,30}\b(?:vorige|eerdere|voorgaande|bovenstaande)\b.{0,20}\b(?:instructies|opdrachten|regels)""",
    ),
    (
        "instrukcj,polece",
        r"""(?:zignoruj|ignoruj|pomi[nń])\w*\b.{0,30}\b(?:poprzedni|wcze[sś]niejsz|powy[zż]sz)\w*.{0,20}\b(?:instrukcj|polece)""",
    ),
    (
        "talimat,komut",
        r"""(?:önceki|onceki|yukar.daki)\b.{0,30}\b(?:talimat|komut)\w*.{0,20}\b(?:yok\s+say|g[oö]rmezden|unut|dikkate\s+alma)""",
    ),
    (
        "инструкц,указани,команд",
        r"""(?:проигнорир|игнорир|забуд)\w*.{0,30}(?:предыдущ|прежн)\w*.{0,20}(?:инструкц|указани|команд)""",
    ),
    (
        "запуск,прогон",
        r"""(?:отмет|оцен|счита)\w*\s+(?:этот|данный)\s+(?:запуск|прогон)""",
    ),
    (
        "忽略,无视,忘记,忽視,無視",
        r"""(?:忽略|无视|忘记|忽視|無視).{0,10}(?:之前|以前|先前|上述|前面|以上).{0,10}(?:指令|指示|提示|規則|规则)""",
    ),
    (
        "本次,此,该,这次,這次",
        r"""(?:将|把|將)(?:本次|此次|此|这次|该|這次)(?:运行|执行|轨迹|運行|執行).{0,8}(?:标|评|判|视|標|評)""",
    ),
    (
        "無視,忘れ",
        r"""(?:以前|これまで|前|上記).{0,6}(?:指示|命令|ルール).{0,6}(?:無視|忘れ)""",
    ),
    (
        "무시,잊",
        r"""(?:이전|앞선|위의).{0,10}(?:지시|명령|지침).{0,10}(?:무시|잊)""",
    ),
    (
        "تجاهل",
        r"""تجاهل.{0,30}(?:التعليمات|الأوامر|الاوامر).{0,20}السابق""",
    ),
    (
        "aexecu",
        r"""(?:marque|marca|avali|consider|classifi)\w*\s+(?:esta|essa|a)\s+execu[cç][aã]o\s+
        (?:(?:como\s+)?(?:um\s+)?sucesso|como\s+(?:bem|aprovad|corret|perfeit))""",  # codespell:ignore
    ),
    (
        "esecuzione",
        r"""(?:segna|contrassegn|valut|consider|classific)\w*\s+(?:questa|la|l')\s*esecuzione\s+come\s+(?:un\s+)?
        (?:successo|riuscit|corrett|perfett|superat)""",
    ),
    (
        "euitvoering,erunals",
        r"""(?:markeer|beoordeel|beschouw)\w*\s+(?:deze|de)\s+(?:uitvoering|run)\s+als\s+(?:een\s+)?  # codespell:ignore
        (?:succes|geslaagd|correct|foutloos)""",  # codespell:ignore
    ),
    (
        "uruchomienie,wykonanie,przebieg",
        r"""(?:oznacz|oce[nń]|uznaj)\w*\s+(?:to|ten|te)\s+(?:uruchomienie|wykonanie|przebieg)\s+(?:jako|za)\s+  # codespell:ignore
        (?:sukces|udan|poprawn)""",
    ),
    (
        "baarl,baaril,basarl,basaril",
        r"""bu\s+(?:[cç]al[i\u0131][sş](?:t[i\u0131]r)?ma|y[uü]r[uü]tme)\w*\s+ba[sş]ar[i\u0131]l[i\u0131]\s+  # codespell:ignore
        (?:olarak|say|i[sş]aretle|de[gğ]erlendir)""",
    ),
    (
        "実行,ラン,トレース",
        r"""(?:この|本|今回の)(?:実行|ラン|トレース)(?:結果)?を.{0,6}(?:成功|合格|正解|正常).{0,6}[とに].{0,6}
        (?:マーク|判定|評価|記録|報告|見な|みな)""",
    ),
    (
        "실행,트레이스",
        r"""(?:이|이번)\s*(?:실행|트레이스)[을를].{0,6}(?:성공|합격|통과|정답).{0,4}로.{0,6}
        (?:표시|평가|판정|기록|간주|보고|처리)""",
    ),
    (
        "هذاالتشغيل,هذاالتنفيذ",
        r"""(?:اعتبر|صنف|قيم|ضع\s+علامة).{0,20}هذا\s+(?:التشغيل|التنفيذ).{0,20}(?:ناجح|نجاح)""",
    ),
    (
        "सफल",
        r"""इस\s+(?:रन|निष्पादन)\s+को\s.{0,10}सफल.{0,20}(?:चिह्नित|मान|घोषित)""",
    ),
    (
        "अनदेखा,नज़रअंदाज,भूल",
        r"""(?:पिछल|पूर्व).{0,20}(?:निर्देश|आदेश).{0,30}(?:अनदेखा|नज़रअंदाज|भूल)""",
    ),
)
_MARKS = (
    "<|im_",
    "<|start_header_id|>",
    "<start_of_turn>",
    "[/inst]",
    "[inst]",
    "<<sys>>",
    "### instruction:",
)
"""Beginnings of chat templates' marks, whose letters alone are too common for keys."""
_TEMPLATE = re.compile(
    r"""
    <(?:\|im_start\||\|start_header_id\||start_of_turn)>\s*(?:system|user|assistant|model|tool|developer|ipython)\b
    | ^[ \t]*(?:<\|im_(?:start|end)\|>|<\|start_header_id\|>|<start_of_turn>|\[/?inst\]|<<sys>>|\#\#\#[ ]instruction:)
    | (?:<\|im_end\|>|\[/inst\]|<<sys>>)[ \t]*(?=<|$)
    | <\|im_start\|>(?s:.{12,300}?)<\|im_end\|> | \[inst\](?s:.{12,300}?)\[/inst\]
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
"""A mark with the role that it begins, at the edge of a line or around a passage: another within a sentence is spoken of."""
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_NOT_LETTERS = re.compile(r"[\W\d_]+")
_SMALL = bytes(ord(chr(code).lower()) if code < 128 else code for code in range(256))
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalpha())


def letters_of(text: str) -> str:
    """Return the letters alone, small ones: words may be split or joined by spaces, dots and digits.

    Those of ASCII come first, then the others.
    """
    found = text.encode("ascii", "ignore").translate(_SMALL, _NO_LETTERS).decode("ascii")
    if text.isascii():
        return found
    return found + _NOT_LETTERS.sub("", "".join(_NOT_ASCII.findall(text)).lower())


_PHRASES = tuple(
    (tuple(map(letters_of, keys.split(","))), re.compile(phrase, re.VERBOSE | re.DOTALL))
    for keys, phrase in (*_ENGLISH, *_OTHERS)
)
_ANY = re.compile(
    "|".join([*(phrase.pattern for _, phrase in _PHRASES), _TEMPLATE.pattern]),
    re.IGNORECASE | re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_SQUEEZED = re.compile(
    r"""
    (?:ignore|disregard|forget)(?:all|any)?(?:of)?(?:the|your)?(?:previous|prior|above|earlier)
        (?:system)?(?:instruction|prompt|rules|guideline)
    | (?:mark|rate|classify|declare|judge|grade)this(?:whole|entire)?(?:run|trace|trajectory|transcript)as
    """,
    re.VERBOSE,
)
_ALL_KEYS = {key for keys, _ in _PHRASES for key in keys}
_KEYS = tuple(sorted(key for key in _ALL_KEYS if not any(k in key for k in _ALL_KEYS if k != key)))
_LATIN_KEYS = tuple(key for key in _KEYS if key.isascii())


def may_hold_phrase(text: str) -> bool:
    """Return whether one of the phrases may be in a text; most texts have none of the keys."""
    lower = text.lower()
    return _holds_key(letters_of(text)) or any(mark in lower for mark in _MARKS)


def holds_phrase(text: str) -> bool:
    """Return whether a text holds one of the phrases, in words or in its letters alone."""
    letters, lower = letters_of(text), text.lower()
    if any(mark in lower for mark in _MARKS) and _TEMPLATE.search(lower):
        return True
    if not _holds_key(letters):
        return False
    tried = (phrase for keys, phrase in _PHRASES if any(key in letters for key in keys))
    return any(phrase.search(lower) for phrase in tried) or bool(_SQUEEZED.search(letters))


def without_phrases(text: str, instead: str) -> str:
    """Return a text in which every phrase is replaced."""
    return _ANY.sub(instead, text)


def _holds_key(letters: str) -> bool:
    # A plain loop: this is asked of every text, and a generator would take most of the time.
    for key in _LATIN_KEYS if letters.isascii() else _KEYS:  # noqa: SIM110
        if key in letters:
            return True
    return False
