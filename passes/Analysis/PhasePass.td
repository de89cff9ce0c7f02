#ifndef BOWLINE_PASSES_ANALYSIS_PHASEPASS_TD
#define BOWLINE_PASSES_ANALYSIS_PHASEPASS_TD

include "mlir/Pass/PassBase.td"

// A pass on the program of a rank, or on all of it before ranks have programs of their own. It needs what the phase before
// `phase` leaves, or what earlier passes of the same phase do, and is refused elsewhere (PhasePass.h). The verifier in the
// folder of the phase demands what the phase leaves.
class PhasePass<string argument, string phase>
    : PassBase<argument, "::bowline::PhasePass<::bowline::Phase::" # phase # ">">;

#endif // BOWLINE_PASSES_ANALYSIS_PHASEPASS_TD
