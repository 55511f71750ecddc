"""Slow, obvious versions of what the library computes: loops over sequences and steps, in the paper's own layout.

Columns are time. Weights are a dict of W, W_rec, W_fb, bias and leak. All functions work in complex arithmetic too, so
that derivatives can be taken by a complex step.
"""

from reference.gradients import complex_step as complex_step
from reference.gradients import loss as loss
from reference.gradients import printed as printed
from reference.readout import columns as columns
from reference.readout import ridge as ridge
from reference.readout import weighted_ridge as weighted_ridge
from reference.recurrence import ACTIVATIONS as ACTIVATIONS
from reference.recurrence import network as network
from reference.recurrence import run_closed_loop as run_closed_loop
from reference.recurrence import run_with_feedback as run_with_feedback
from reference.recurrence import states as states
from reference.recurrence import states_both_ways as states_both_ways
from reference.selection import block_cuts as block_cuts
from reference.selection import kept_steps as kept_steps
from reference.series import mackey_glass as mackey_glass
from reference.summary import delay as delay
from reference.summary import left_out as left_out
from reference.summary import mean_of_readouts as mean_of_readouts
from reference.summary import ridge_fit as ridge_fit
from reference.summary import seen as seen
from reference.summary import shares_of as shares_of
from reference.summary import summarize as summarize
