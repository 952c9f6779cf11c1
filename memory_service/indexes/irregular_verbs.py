"""English verbs whose past forms a stemmer does not know: "went" is found by "go".

Forms that are more often another word are left out: rose, wound, ground, bound, lay, shot, bore.
"""

from __future__ import annotations

_VERBS = """
    beat beaten; become became; begin began begun; bend bent; bite bit bitten; bleed bled; blow blew blown;
    break broke broken; breed bred; bring brought; build built; burn burnt; buy bought; catch caught;
    choose chose chosen; cling clung; come came; creep crept; deal dealt; dig dug; draw drew drawn;
    dream dreamt; drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt;
    fight fought; find found; flee fled; fly flew flown; foresee foresaw foreseen; forget forgot forgotten;
    forgive forgave forgiven; freeze froze frozen; get got gotten; give gave given; go goes went gone;
    grow grew grown; hang hung; hear heard; hide hid hidden; hold held; keep kept; kneel knelt;
    know knew known; lead led; lean leant; leap leapt; learn learnt; leave left; lend lent; lose lost;
    make made; mean meant; meet met; mistake mistook mistaken; overcome overcame; pay paid; prove proven;
    ride rode ridden; ring rang rung; rise risen; run ran; say said; see saw seen; seek sought; sell sold;
    send sent; sew sewn; shake shook shaken; shine shone; show shown; shrink shrank shrunk; sing sang sung;
    sink sank sunk; sit sat; sleep slept; slide slid; smell smelt; speak spoke spoken; spend spent;
    spill spilt; spin spun; spit spat; spoil spoilt; spring sprang sprung; stand stood; steal stole stolen;
    stick stuck; sting stung; stink stank stunk; strike struck; swear swore sworn; sweep swept;
    swell swollen; swim swam swum; swing swung; take took taken; teach taught; tear tore torn; tell told;
    think thought; throw threw thrown; undergo undergoes underwent undergone; understand understood;
    undertake undertook undertaken; wake woke woken; wear wore worn; weave wove woven; weep wept; win won;
    withdraw withdrew withdrawn; write wrote written
"""

BASES: dict[str, str] = {
    form: base for base, *forms in (verb.split() for verb in _VERBS.split(";")) for form in forms
}
"""The base of each irregular form."""
