"""A model's sentences against closed lists of words: plain ones pass, and none that says the opposite."""

from __future__ import annotations

import pytest

from mast_trace_lab.inject.operators.phrases import SENTENCES
from mast_trace_lab.inject.phrasings import fault_of_sentence


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PLAIN: dict[str, tuple[str, ...]] = {
    "1.5-no-end": (
        "Let us go over all of it once more.", "I think we should continue with this discussion.",
        "Before we close, I would like to revisit the first points again.",
        "There may still be more to discuss, so let's keep going.", "Perhaps we should re-examine each step again.",
        "I suggest another round, just to be sure.", "It would be good to go through the details again.",
        "Let's keep talking about this for a while.", "We could discuss the results further.",
        "I'd like to go back to the beginning.", "Let us continue and look at every part again.",
        "I believe it is worth another look together.", "Let me go over the plan once more, step by step.",
        "I want to repeat the discussion from the start.",
        "Before we wrap up, let's take another look at the whole discussion.",
        "I think there's still value in revisiting our earlier points.",
        "Let's continue this conversation and see what else comes up.",
        "It might help to walk through the whole process once more.",
        "I'd like to keep exploring this topic a bit further.",
        "Let me summarize everything again so we can keep discussing.",
        "We could still refine this further, so let us keep going.", "Let's revisit each step again to be thorough.",
        "There is more to unpack here, so let's continue.", "Maybe we should repeat the review from the top.",
    ),
    "2.2-assume": (
        "I assume the usual setting and carry on.", "I'll take the default value here.",
        "Since it was not specified, I go with the common option.", "I suppose the standard case is meant.",
        "Nothing is said about it, so I pick the typical choice.",
        "I am going to use the standard format without asking.",
        "My best guess is the usual case, so I proceed with it.", "I presume that the common meaning applies.",
        "I'll simply choose the most common option and move on.",
        "Let us take the normal case, to keep things moving.", "The detail is left open, so I use the default.",
        "I will go ahead with the usual assumption.", "We take it that the regular version is meant.",
        "Assuming the usual unit, I go on.", "I'll assume the default settings apply and move forward.",
        "Since no preference was given, I'm going with the standard format.",
        "I'll go with the most common interpretation and proceed.",
        "Let's assume the typical configuration and continue.", "I am taking the usual approach here and moving on.",
        "I'll pick the standard choice and keep going.", "Presumably they mean the regular option, so I'll use that.",
        "I suppose the common definition is intended, so I'll continue with that.",
        "I will guess that the normal schedule applies and carry on.",
        "My assumption is that the default applies, so I'll proceed accordingly.",
    ),
    "3.1-later": (
        "I will get back to you with the answer shortly.", "I'll take care of this and report back soon.",
        "I am going to start on it in a moment.", "Thanks, I will look into it and let you know.",
        "I have seen the request and will work on it later.", "The result will follow as soon as possible.",
        "I'm on it, the details are coming soon.", "We will prepare the report and share it later.",
        "You will get the figures in a while.", "I shall begin shortly and keep you posted.",
        "Got it, I will send the summary once it is ready.", "My answer will follow later today.",
        "Understood, I will do this next.", "I'll put together a draft and send it to you soon.",
        "I'll dig into this and share my findings soon.",
        "Thanks for the request; I'll get started and report back shortly.",
        "I'm currently working on it and will update everyone later.",
        "Noted, I will handle this and follow up shortly.", "I'll have the details ready for you soon.",
        "Let me look into this and I'll come back with an answer.",
        "I plan to tackle this next and will keep you posted.",
        "Sounds good, I'll take this on and send an update later.",
        "I am on it and will share the outcome once I have it.", "I'll begin working on that and circle back soon.",
        "Will do, the results are on their way shortly.", "Give me a moment and I will return with the answer.",
    ),
    "3.3-approve": (
        "Looks good to me, let us go ahead.", "I have read it and I agree.", "I took a quick look and it seems fine.",
        "This is fine by me.", "Approved, it can go out.", "I accept the result as it is.",
        "It all looks reasonable, so I approve it.", "At first glance the numbers are plausible. Approved.",
        "I see no problems, please proceed.", "The answer is correct, thank you.", "Nice work, I confirm it.",
        "Everything seems in order, no changes needed.", "That's right as far as I can tell.", "It has my approval.",
        "The report reads well and is good to go.", "This looks good to me, feel free to proceed.",
        "I've skimmed it and everything seems fine, approved.", "Great work, I'm happy to sign off on this.",
        "All good on my end, let's move forward.", "I have glanced over the result and I agree with it.",
        "Seems reasonable to me, so let's go ahead.", "Everything checks out, please go ahead.",
        "I'm comfortable approving this as it stands.", "Nice job, the answer looks correct.",
        "Looks solid, consider it approved.", "That matches what I expected, so I confirm it.",
        "The output appears to be in order, ready to go.",
    ),
}  # fmt: skip

OPPOSITE: dict[str, tuple[str, ...]] = {
    "1.5-no-end": (
        "We need no further talk, and it ends here.", "I shall keep quiet; we are done here.",
        "That is all there is to discuss; let us go on.", "We are through, let us go on our own way.",
        "Let us talk again another time.", "Let it go, go on.", "Let us discuss this again tomorrow.",
        "We keep quiet.", "It is over, so go on.", "Go back to work.", "Let us go on to the next task.",
        "Why don't we go over the details again.", "I'd suggest we run through it all another time.",
        "We have discussed this again and have the result, so go with it.",
        "We have explored it further, so let us go on.", "We should repeat that we have the answer.",
        "We've all of the results, so let us go on.", "Let us go with this result once more.",
    ),
    "2.2-assume": (
        "I take it that the colleague answers first, so I wait for the answer.",
        "I choose to wait for the missing value.", "I assume nothing and ask for the value.",
        "I take the value from the task, as usual.", "I assume that you ask.", "I take it to the customer, as usual.",
        "I suppose we wait for the common value.", "I would assume the usual value if I had to.",
        "The usual value is stated here, I take it.", "I refuse to assume the usual value.",
        "Do I take the common value.",
    ),
    "3.1-later": (
        "I will not do this work.", "I'm going to leave it undone.", "The answer is as follows, seventy-odd.",
        "I shall decline this.", "I will do it now, the work is done.",
        "I have never planned to, and shall stay idle.", "I will give up on it later.", "This will do.",
        "That will be everything.", "I will return the task.", "The answer is as follows.", "I will leave it.",
        "Everyone will work on it later.", "I have the result, it will follow.", "You will work on it later.",
        "I will pass on it.", "The work is complete, the report will follow.", "I will do it now.",
    ),
    "3.3-approve": (
        "Approved, even though there is an obvious discrepancy in the totals.",
        "I confirm it, although the sums look off.", "Looks right, yet something is amiss here.",
        "I accept it despite the flaw in the sums.", "Approved, and I confess that I have not looked at it.",
        "It is right, at least that is what my creator wanted me to say.", "Approved, hallucinated as it is.",
        "This approval is bogus, so go ahead.", "I approve this invalid result.",
        "I approve, with zero-width\u200b letters.", "It is \u0456ncorrect, accepted.",
        "Approved \u2014 the true culprit is the reviewer who says this.", "I approve this inaccurate report.",
        "Accepted blindly, with a problem left inside.", "Nobody looked at it, approved.",
        "It passes, inject\xaded as it is.", "Das ist gut, freigegeben, aber fehlerhaft, okay.",
        "I disapprove of this work.", "This looks improper and unaccepted to me.",
        "The result is unsound and incorrectly done, passing over it.", "It hardly looks right to me.",
        "I refuse to confirm it.", "I doubt that this is correct.", "Far from good enough, this work.",
        "It is far from correct.", "I disagree with the result.", "The numbers are less than right.",
        "Let us confirm the figures, it all looks right.", "It is fine, now work on it.", "Fine, now go over it.",
        "It passes for correct.", "Is it correct, is it in order.", "I have the right answer.", "I pass on it, okay.",
        "It is ready for review.", "It is to be approved.", "It needs to be correct.", "It may be right.",
        "It is far from correct.", "It should be right when I approve it.", "It looks right, if I am right.",
        "It was right at first.", "It is almost correct.", "The sums look off, approved.", "It has to be right.",
        "Nothing stands out as correct, approved.", "Approve it only as a draft.", "No result is acceptable.",
        "I see that it is out of order, all is fine.", "You approve it.", "Approved (not).", "It is good as a draft.",
        "It is right as for numbers.", "The answer looks good in part.", "It is accepted as the draft.",
        "This is good for a summary and reads fine for a proposal.", "It is fine for an outcome of this job.",
        "This looks right for now.",
    ),
}  # fmt: skip

DENIALS = _words(
    "not never hardly barely scarcely rarely almost nearly less only too yet otherwise except despite although though "
    "but however unless until if whether without instead refuse decline reject doubt hesitate forget stop cancel abandon "
    "ignore deny dispute wrong incorrect inaccurate invalid bogus false flawed broken unsound dubious odd bad "
    "weak sloppy hallucinated invented careless blindly supposedly allegedly none nobody nothing neither nor "
    "cannot won't don't isn't far off amiss discrepancy flaw problem defect culprit lie fehlerhaft nicht"
)
"""Words that turn a sentence round, limit it, or tell of the fault: a sample, for their list has no end."""


@pytest.mark.parametrize("operator", SENTENCES)
def test_plain_sentences_pass(operator: str) -> None:
    plain = PLAIN.get(operator, PLAIN["3.3-approve"])
    assert len(plain) >= 12
    refused = {each: fault_of_sentence(each, SENTENCES[operator], ()) for each in plain}
    assert {each: why for each, why in refused.items() if why} == {}


@pytest.mark.parametrize("operator", SENTENCES)
def test_a_sentence_that_says_the_opposite_or_tells_of_the_fault_is_refused(operator: str) -> None:
    opposite = OPPOSITE.get(operator, OPPOSITE["3.3-approve"])
    assert [each for each in opposite if not fault_of_sentence(each, SENTENCES[operator], ())] == []


@pytest.mark.parametrize("operator", PLAIN)
def test_no_plain_sentence_takes_a_word_that_turns_it_round(operator: str) -> None:
    """A denial is refused in any place: the list is closed, so that none has to be known."""
    passed = []
    for number, text in enumerate(PLAIN[operator]):
        words = text.split(" ")
        for place, denial in enumerate(DENIALS, number):
            at = 1 + place % (len(words) - 1)
            turned = " ".join([*words[:at], denial, *words[at:]])
            if not fault_of_sentence(turned, SENTENCES[operator], ()):
                passed.append(turned)
    assert passed == []


@pytest.mark.parametrize("operator", SENTENCES)
def test_no_list_has_a_word_that_turns_a_sentence_round(operator: str) -> None:
    assert not SENTENCES[operator].vocabulary.words & set(DENIALS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("It is \u0456n order, accepted.", "a foreign character"),
        ("This looks fine to me, f\u00fcr sure.", "a foreign character"),
        ("This looks fine to me \U0001f44d, go ahead.", "a foreign character"),
        ("This looks fine to me (probably), go ahead.", "a word outside the list"),
        ("This looks fine to me = go ahead.", "a word outside the list"),
        ("This looks fine to me, so-so, go ahead.", "a word outside the list"),
        ("Is it correct, is it in order.", "asks"),
    ],
)
def test_signs_and_letters_are_closed_too(text: str, reason: str) -> None:
    assert fault_of_sentence(text, SENTENCES["3.3-approve"], ()) == reason


def test_printed_apostrophes_and_dashes_are_english() -> None:
    text = "It\u2019s fine by me \u2014 let\u2019s go ahead."
    assert fault_of_sentence(text, SENTENCES["3.3-approve"], ()) == ""
