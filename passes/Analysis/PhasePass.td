#ifndef BOWLINE_PASSES_ANALYSIS_PHASEPASS_TD
#define BOWLINE_PASSES_ANALYSIS_PHASEPASS_TD

include "mlir/Pass/PassBase.td"

// A pass on the program of a rank, or on all of it before ranks have programs of their own. It needs the program as the
// phase before `phase`, or earlier passes of this phase, leave it, and is refused elsewhere (PhasePass.h). The verifier
// in the folder of the phase demands the form in which the phase leaves the program.
class PhasePass<string argument, string phase>
    : PassBase<argument, "::bowline::PhasePass<::bowline::Phase::" # phase # ">">;

#endif // BOWLINE_PASSES_ANALYSIS_PHASEPASS_TD
