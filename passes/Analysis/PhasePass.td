#ifndef BOWLINE_PASSES_ANALYSIS_PHASEPASS_TD
#define BOWLINE_PASSES_ANALYSIS_PHASEPASS_TD

include "mlir/Pass/PassBase.td"

// A pass of phase `phase`, which runs on the program of a rank, or on the whole program before it is divided by rank.
// The module must have completed the phase before `phase`, or `phase` itself; elsewhere the pass fails (PhasePass.h).
// The verifier in the phase's folder checks the form in which the phase leaves the program.
class PhasePass<string argument, string phase>
    : PassBase<argument, "::bowline::PhasePass<::bowline::Phase::" # phase # ">">;

#endif // BOWLINE_PASSES_ANALYSIS_PHASEPASS_TD
