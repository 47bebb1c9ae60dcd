/* Verbs of the captions. "move" and "moving" mean the same as "moves" to the model. */
#pragma once

/* X(name, she ..., they ..., ...ing) */
#define MSA_VERBS(X)                                                                                         \
  X(MOVE, "moves", "move", "moving")                                                                         \
  X(SLIDE, "slides", "slide", "sliding")                                                                     \
  X(DRIFT, "drifts", "drift", "drifting")                                                                    \
  X(GLIDE, "glides", "glide", "gliding")                                                                     \
  X(GO, "goes", "go", "going")                                                                               \
  X(TRAVEL, "travels", "travel", "traveling")                                                                \
  X(FLOAT, "floats", "float", "floating")                                                                    \
  X(FLY, "flies", "fly", "flying")                                                                           \
  X(ROLL, "rolls", "roll", "rolling")                                                                        \
  X(RISE, "rises", "rise", "rising")                                                                         \
  X(CLIMB, "climbs", "climb", "climbing")                                                                    \
  X(ASCEND, "ascends", "ascend", "ascending")                                                                \
  X(FALL, "falls", "fall", "falling")                                                                        \
  X(SINK, "sinks", "sink", "sinking")                                                                        \
  X(DROP, "drops", "drop", "dropping")                                                                       \
  X(DESCEND, "descends", "descend", "descending")                                                            \
  X(COME, "comes", "come", "coming")                                                                         \
  X(STAY, "stays", "stay", "staying")                                                                        \
  X(STAND, "stands", "stand", "standing")                                                                    \
  X(REMAIN, "remains", "remain", "remaining")                                                                \
  X(REST, "rests", "rest", "resting")                                                                        \
  X(SIT, "sits", "sit", "sitting")                                                                           \
  X(HOVER, "hovers", "hover", "hovering")                                                                    \
  X(BE, "is", "are", "being")                                                                                \
  X(DO, "does", "do", "doing")                                                                               \
  X(GROW, "grows", "grow", "growing")                                                                        \
  X(GET, "gets", "get", "getting")                                                                           \
  X(BECOME, "becomes", "become", "becoming")                                                                 \
  X(EXPAND, "expands", "expand", "expanding")                                                                \
  X(SWELL, "swells", "swell", "swelling")                                                                    \
  X(SHRINK, "shrinks", "shrink", "shrinking")                                                                \
  X(CONTRACT, "contracts", "contract", "contracting")                                                        \
  X(SPIN, "spins", "spin", "spinning")                                                                       \
  X(ROTATE, "rotates", "rotate", "rotating")                                                                 \
  X(TURN, "turns", "turn", "turning")                                                                        \
  X(REVOLVE, "revolves", "revolve", "revolving")                                                             \
  X(WHIRL, "whirls", "whirl", "whirling")                                                                    \
  X(BOUNCE, "bounces", "bounce", "bouncing")                                                                 \
  X(HOP, "hops", "hop", "hopping")                                                                           \
  X(JUMP, "jumps", "jump", "jumping")

enum msa_verb {
#define X(name, she, they, ing) MSA_VERB_##name,
  MSA_VERBS(X)
#undef X
      MSA_VERBS_COUNT
};
