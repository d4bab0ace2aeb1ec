"""The tuned constants of Newton's method: what each limits, its unit, and how it was tuned.

The method reads a constant as `tuning.NAME`, so a test or an experiment changes it in one place. If other
values were measured, the comment gives their times relative to the chosen value. Levels of rounding errors
are defined beside the mathematics that they belong to.
"""

from __future__ import annotations

# Which engine (`newton/__init__.py`) ----------------------------------------------------------------------

# The most features for which the Gram matrix of all of them is formed; for C classes, divided by √C.
GRAM_FEATURES = 1000

# This many times as many features, 3,000 and 72 MB, if the Gram matrix follows an engine that has spent its
# budget.
HAND_OVER_RATIO = 3

# The budget of an engine that does not factorise, as a share of the cost of one that does: of the whole fit,
# and of a step, which bounds an iteration. Without the second condition, the simulated data "sparse" with ℓ2,
# λ = 0.01, take 3.6 times as long (in CPU time). The share is not tuned.
HAND_OVER_SHARE = 0.5

# The most rows per feature for which the Gram matrix counts as singular if the penalty is weak and has a
# kink. Tuned on normal numbers: 300 × 900 at λ_max/10⁴ takes 45 s with the Gram matrix and 0.6 s by
# coordinate descent. With 4 rows per feature either is faster by a factor of up to 4, with 10 the Gram
# matrix by up to 6.
SINGULAR_ROWS_PER_FEATURE = 2

# The most features for which a singular Gram matrix costs little.
SINGULAR_FEATURES = 50

# Dense rows: the fewest features for which the Gram matrix of some of them is tried before that of all.
WORKING_SET_FEATURES = 200

# The most rows for which the dual equations are used: with some thousand rows, factorising them takes as long
# as many passes.
DUAL_ROWS = 2500

# Prices, in nanoseconds (`costs.py`) ----------------------------------------------------------------------

# Per entry of a column, per entry of sparse rows, per update of H by two entries of a sparse row, and per
# flop of a factorisation: measured on rcv1_subset.
SWEEP_NS, PASS_NS, UPDATE_NS, FLOP_NS = 2.4, 1.0, 1.5, 0.04

# Per entry of dense rows: measured on cina0.
DENSE_PASS_NS = 0.12

# Per entry of H in a sweep over a quadratic model: an estimate, not measured separately.
MODEL_SWEEP_NS = 0.5

# Per feature in all vector operations of a step of conjugate gradients: an estimate from profiles of
# rcv1_subset.
VECTOR_NS = 10.0

# The overhead of Python for a Newton step of any size.
STEP_NS = 1e6

# Typical numbers, on data that are not badly conditioned, of steps with a Gram matrix, of products of
# conjugate gradients, and of gradients of all features in coordinate descent. On the seven data sets of
# benchmarks/compare.py they are 4 to 21, 52 to 844 and 4 to 14.
GRAM_STEPS, CG_PRODUCTS, CD_GRADIENTS = 8, 60, 8

# Products of conjugate gradients per square root of the condition number, if that makes fewer than
# CG_PRODUCTS: `costs.py` has the figures.
CG_PRODUCTS_PER_ROOT = 2.0

# Power iterations for that condition number, each a product.
CONDITION_STEPS = 3

# The same for steps with the dual equations: leukemia takes 4, the simulated data "wide" 1.
DUAL_STEPS = 3

# Sweeps between two gradients of all features, if each went over all entries (most go over few): an estimate.
CD_SWEEPS_PER_GRADIENT = 10

# Where a run starts ---------------------------------------------------------------------------------------

# Rows in memory: a run from zero starts with every 16th row. (8: fits take 1.06 to 1.09 times as long.)
SUBSAMPLE_STEP = 16

# The fewest rows of such a sample, which also has at least as many rows as features.
SUBSAMPLE_ROWS = 400

# Newton steps on such a sample. (3 and 4: fits take 1.02 and 1.07 times as long, the mean of 15 cells.)
SUBSAMPLE_NEWTON_STEPS = 2

# Proximal gradient steps of a start for dense rows, and products to estimate their length. (10 and 5: the
# simulated data "dense" with ℓ1 take 1.08 times as long; 14 and 5, 1.16 times.)
PROXIMAL_STEPS, POWER_STEPS = 8, 3

# The largest cost of such a start, as a share of that of the Gram matrix of the features that may be used. On
# 11 problems (normal numbers, independent, autoregressive or with ten factors, with λ_max/10 and λ_max/100)
# fits take 0.64 to 1.24 times as long as without such a start; with that share of the cost of the Gram matrix
# of all features, 0.64 to 1.5 times.
PROXIMAL_START_SHARE = 0.35

# Newton steps for the scale of a start by dual coordinate descent.
SCALING_STEPS = 4

# The most rows for which problems with stronger penalties are solved first, if φ has a kink.
STRONGER_PENALTY_ROWS = 1000

# The smallest λ_max/λ for which they are solved first with any number of rows.
STRONGER_PENALTY_RATIO = 1e5

# The same for several classes, whose coordinate descent is slower.
STRONGER_PENALTY_RATIO_JOINT = 1e3

# Rows not in memory: the entries of the sample that is solved first, counted as if it were dense.
SAMPLE_ENTRIES = 16_000_000

# The same for sparse rows with more features than may move at a time.
SPARSE_SAMPLE_ENTRIES = 4_000_000

# The sample has at most every 8th row: most rows must stay on their disk or cluster.
SAMPLE_LEAST_STEP = 8

# The gap at which the problem of the sample counts as solved.
SAMPLE_TOLERANCE = 1e-4

# The most Newton steps on the sample.
SAMPLE_NEWTON_STEPS = 30

# How accurately a quadratic model is minimised ------------------------------------------------------------

# The violation at which a model counts as solved, relative to the violation at the start.
MODEL_ACCURACY = 0.05

# The same per relative error of the last model's prediction, for the Gram matrix in memory.
MODEL_ACCURACY_PER_ERROR = 0.1

# The smallest such share in memory. With MODEL_ACCURACY throughout, paths of 100 strengths on w8a, a9a, cina0
# and mushrooms took 374, 302, 368 and 384 steps; with these two constants 282, 188, 240 and 205.
FINEST_MODEL_ACCURACY = 5e-4

# The largest predicted fall of Φ, relative to Φ, of a step in memory that is likely to be the last. With the
# default tolerance, the last steps on w8a, a9a, ijcnn1 and cina0 started at 4e-12 to 5e-8 above the minimum
# (with ℓ2 on cina0 2e-5), those before them at 6e-7 to 2e-5.
LAST_STEP_FALL = 1e-7

# Rows not in memory, where a pass takes longer than a step: the accuracy of models of all features.
PASS_MODEL_ACCURACY = 1e-3

# The same for models of some features: the relative error of the last prediction, but at least this.
FINEST_PASS_MODEL_ACCURACY = 0.002

# With more features than this, and known signs, a model is solved on the support of θ before the first sweep.
# Paths of w8a, a9a and cina0 take 0.9 of the time; with the 22 features of ijcnn1, 1.07 times. In fits from
# zero, where signs change, it does not pay: 1.3 times on mushrooms with λ_max/1000.
SIGNS_KNOWN_FEATURES = 50

# Flops of the sweeps between two solves on the support. (0.6e6 and 1.5e6: fits take 1.07 times as long;
# 8e6: 0.96, within the noise.)
SWEEP_FLOPS = 3e6

# The least and the most sweeps between two solves, whatever the size of the model.
LEAST_SWEEPS, MOST_SWEEPS = 20, 400

# The most rounds of sweeps and a solve.
MODEL_ROUNDS = 10

# The most Newton steps on the model of a smooth penalty.
SMOOTH_STEPS = 30

# The same on the support of several classes, per round.
SUPPORT_STEPS = 2

# The most shortened steps on the support before the next sweeps.
SUPPORT_CUTS = 20

# The fewest features in use for which factorisations are most of the cost of a step; the numbers of rounds
# and of shortened steps are then these. With MODEL_ROUNDS and SUPPORT_CUTS, the simulated data "sparse" with
# λ_max/1000 and 1,500 features in use take 1.9 times as long; with one round, 9 times.
LARGE_SUPPORT, LARGE_MODEL_ROUNDS, LARGE_SUPPORT_CUTS = 500, 3, 2

# The number of step lengths tried on the support, down to the first crossing of zero.
SHORTER_STEPS = 5

# The most unknowns, all classes together, whose coupled equations are solved by a factorisation.
DIRECT_UNKNOWNS = 1200

# The residual of conjugate gradients on a model, which need no pass over the rows.
MODEL_CG_ACCURACY = 1e-3

# The residual of Newton's equations, relative to the gradient, at which conjugate gradients in memory stop.
# Tuned on rcv1_subset with ℓ2, λ = 1 and 0.01: 0.1 takes 1.07 and 1.40 times as long as 0.2, 0.3 1.10 and
# 1.12.
CG_FORCING = 0.2

# Which features a step may move ---------------------------------------------------------------------------

# A feature is watched if its gradient of the loss is at least this share of the slope of the kink.
WATCHED_SLOPE_SHARE = 0.8

# The number of features of the first Gram matrix of a working set.
WORKING_SET_FIRST = 50

# The number of features of later ones, relative to the features in use.
WORKING_SET_GROWTH = 3

# The factor by which the certificate falls before the gradient of all features is computed the first time.
WORKING_SET_FIRST_CHECK = 0.3

# The same before each later time.
WORKING_SET_NEXT_CHECK = 1e-3

# The largest share of the features for which a working set pays. (1/3: the simulated data "dense" with
# λ_max/10 take 1.3 times as long; 1: with λ_max/100 1.9 times. Cina0: the same with 1/3.)
WORKING_SET_SHARE = 0.7

# The number of features that coordinate descent watches first. (250: 1.06 times as long on rcv1_subset and
# leukemia; 1,000: 0.99; 2,000: 1.08.)
CD_FIRST = 500

# The number that it watches later, relative to the features in use.
CD_GROWTH = 3

# Rows not in memory: the number of features that may move first.
PASS_FIRST = 500

# The number that may move later, relative to the features in use.
PASS_GROWTH = 2

# Coordinate descent along columns (`cd.py`) ---------------------------------------------------------------

# The violation at which a round of coordinate descent ends: the smaller of these shares of the violation of
# all features and of the last round's goal. (With the first alone, convergence is slow.) 0.2 and 0.3: on
# rcv1_subset and the simulated data "text" and "wide", with ℓ1 at λ_max/10 to λ_max/1000, fits take 1.09
# times as long in the mean (0.9 to 2.0 times); four other pairs 1.03 to 1.13 times.
CD_GOALS = 0.1, 0.1

# The same if the watched features have few of all entries: sweeps are then much cheaper than the gradient of
# all features, which is computed less often. On leukemia with λ_max/10, 5 gradients instead of 8 take 7.1 ms
# instead of 10.9; on rcv1_subset, whose watched features have many entries, fits would take 1.0 to 1.4 times
# as long.
CD_GOALS_IF_FEW = 0.05, 0.1

# The largest share of all entries that counts as few, for the CD_FIRST longest columns.
CD_FEW = 0.1

# The share to which the violation of coordinates that are likely to move falls before all are visited again.
CD_INNER_ACCURACY = 0.01

# The number of sweeps between two extrapolations.
CD_EXTRAPOLATED_SWEEPS = 5

# Rounds of sweeps in one compiled call. (Between calls the cost of a Newton step, which falls with the
# support, is computed again.)
CD_ROUNDS_PER_CALL = 4

# The most rounds of sweeps and a Newton step before the gradient of all features is computed again.
CD_ROUNDS = 60

# The most entries of the Hessians on the support, of all classes together: of one class, 2,500 features and
# the intercept.
CD_HESSIAN_ENTRIES = 2501**2

# Newton steps in a row.
CD_NEWTON_STEPS = 2

# The most conjugate gradient steps if the Hessians of several classes are too large.
CD_CG_STEPS = 250

# Their accuracy.
CD_CG_ACCURACY = 0.01

# The factor of the cost of a Newton step if the support is larger than the number of active rows.
SINGULAR_PRICE = 5.0

# The nanoseconds of work between two provisional iterates.
SHOWN_NS = 2e6

# The most nanoseconds of one call of the compiled sweeps: Ctrl-C waits for its end.
CALL_NS = 5e7

# Rows that are not in memory (`out_of_core.py`) -----------------------------------------------------------

# The most features of one class whose Hessian a pass computes.
PASS_FEATURES = 3000

# The most entries of the Hessians of several classes.
PASS_ENTRIES = PASS_FEATURES**2

# The parts of a step at which a pass also computes the loss.
SHORTER_PARTS = (0.5, 0.25, 0.0625, 1 / 256)

# The largest relative error of a predicted decrease for which a model counts as right.
RIGHT_MODEL_ERROR = 0.3

# The largest predicted decrease, relative to the last one, for which a model's Hessian is used again.
REUSED_HESSIAN_FALL = 1 / 256

# The fewest rows per feature of a sample that estimates how a Hessian changes.
SAMPLED_ROWS_PER_FEATURE = 8

# Steps of half-quadratic MM for a feature that is moved separately.
SINGLE_FEATURE_STEPS = 20

# The most passes for one solution of the equations of several classes, without their matrix.
JOINT_CG_PASSES = 20

# Work between two checks for Ctrl-C (`dual_newton.py`) ----------------------------------------------------

# The number of features whose products are added up at a time.
DUAL_FEATURES_AT_A_TIME = 1024

# The number of rows that are copied at a time.
DUAL_ROWS_AT_A_TIME = 64
