"""The tuned constants of Newton's method, in one table: what each limits, in which unit, how it was tuned.

The parts of the method read a constant as `tuning.NAME`, so a test or an experiment changes it in one place.
Where other values were measured, the comment gives the times relative to the value that was chosen.
Rounding levels and sizes of numerical noise stand with the mathematics that they belong to.
"""

from __future__ import annotations

# Which engine (`newton/__init__.py`) ----------------------------------------------------------------------

# Features up to which the Gram matrix of all of them is formed; of C classes, divided by √C.
GRAM_FEATURES = 1000

# How many times as many features the Gram matrix may have that takes over from an engine that has spent its
# budget: 3,000, and 72 MB.
HAND_OVER_RATIO = 3

# The budget of an engine that does not factorise, as a share of the cost of one that does: in all, and for an
# iteration, which has to cost more than that share of a step as well. Without the second condition, the
# simulated data "sparse" with ℓ2, λ = 0.01, take 2.9 times as long. (The share is not tuned.)
HAND_OVER_SHARE = 0.5

# Rows per feature up to which the Gram matrix counts as singular at faint penalties with a kink. Tuned on
# normal numbers: 300 × 900 at λ_max/10⁴ takes 45 s with the Gram matrix and 0.6 s by coordinate descent; at
# 4 rows per feature either wins by up to 4, at 10 the Gram matrix wins by up to 6.
SINGULAR_ROWS_PER_FEATURE = 2

# Features up to which a singular Gram matrix costs little.
SINGULAR_FEATURES = 50

# Features of dense rows from which on the Gram matrix of some of them is tried before that of all.
WORKING_SET_FEATURES = 200

# Rows up to which the dual equations are used: with some thousand, factorising them takes as long as many
# passes.
DUAL_ROWS = 2500

# Prices, in nanoseconds (`costs.py`) ----------------------------------------------------------------------

# Of an entry of a column, of an entry of sparse rows, of an update of H by two entries of a sparse row, and
# of a flop of a factorisation: measured on rcv1_subset.
SWEEP_NS, PASS_NS, UPDATE_NS, FLOP_NS = 2.4, 1.0, 1.5, 0.04

# Of an entry of dense rows: measured on cina0.
DENSE_PASS_NS = 0.12

# Of an entry of H in a sweep over a quadratic model: an estimate, not measured by itself.
MODEL_SWEEP_NS = 0.5

# Of a feature in all vector operations of a step of conjugate gradients: an estimate from profiles of
# rcv1_subset.
VECTOR_NS = 10.0

# What Python takes for a Newton step, whatever its size.
STEP_NS = 1e6

# How often engines pay them, on data that are not badly conditioned: steps with a Gram matrix, products of
# conjugate gradients, looks of coordinate descent at all features. Those of the seven data sets of
# benchmarks/compare.py are 4 to 21, 52 to 844 and 4 to 14.
GRAM_STEPS, CG_PRODUCTS, CD_LOOKS = 8, 60, 8

# Products of conjugate gradients per square root of the condition number, if that makes fewer than
# CG_PRODUCTS: `costs.py` has the figures.
CG_PRODUCTS_PER_ROOT = 2.0

# Power iterations for that condition number, each a product.
CONDITION_STEPS = 3

# The same for steps with the dual equations: leukemia takes 4, the simulated data "wide" 1.
DUAL_STEPS = 3

# Sweeps between two looks, as if each went over all entries (as a rule it goes over few): an estimate.
CD_SWEEPS_PER_LOOK = 10

# Where a run starts ---------------------------------------------------------------------------------------

# Rows in memory: a run from zero begins on every 16th row. (8: fits take 1.06 to 1.09 times as long.)
SUBSAMPLE_STEP = 16

# Rows that such a sample has at least; and at least as many as features.
SUBSAMPLE_ROWS = 400

# Newton steps on such a sample. (3 and 4: fits take 1.02 and 1.07 times as long, the mean of 15 cells.)
SUBSAMPLE_NEWTON_STEPS = 2

# Proximal gradient steps of a start for dense rows, and products for the length of its steps. (10 and 5: the
# simulated data "dense" with ℓ1 take 1.08 times as long; 14 and 5, 1.16 times.)
PROXIMAL_STEPS, POWER_STEPS = 8, 3

# The share of the cost of the Gram matrix of the features in play that such a start may take. On 11 problems
# (normal numbers, independent, autoregressive or with ten factors, with λ_max/10 and λ_max/100) fits take
# 0.64 to 1.24 times as long as without such a start; with that share of the Gram matrix of all features, 0.64
# to 1.5 times.
PROXIMAL_START_SHARE = 0.35

# Steps of Newton's method for the scale of a start by dual coordinate descent.
SCALING_STEPS = 4

# Rows up to which a penalty with a kink is approached from stronger ones.
STRONGER_PENALTY_ROWS = 1000

# λ_max/λ from which on such a penalty is approached from stronger ones, whatever the number of rows.
STRONGER_PENALTY_RATIO = 1e5

# The same for several classes, whose descent on whole features is slower.
STRONGER_PENALTY_RATIO_JOINT = 1e3

# Rows not in memory: entries of the sample that is solved first, if it were dense.
SAMPLE_ENTRIES = 16_000_000

# The same for sparse rows with more features than may move at a time.
SPARSE_SAMPLE_ENTRIES = 4_000_000

# Rows from one of that sample to the next, at least: rows that are elsewhere are to stay there.
SAMPLE_LEAST_STEP = 8

# The gap at which that sample counts as solved.
SAMPLE_TOLERANCE = 1e-4

# Newton steps on that sample, at most.
SAMPLE_NEWTON_STEPS = 30

# How accurately a quadratic model is minimised ------------------------------------------------------------

# The share of the first violation that is left at the end.
MODEL_ACCURACY = 0.05

# The same per relative error of the last model's prediction, for the Gram matrix in memory.
MODEL_ACCURACY_PER_ERROR = 0.1

# The most accurate model in memory. With MODEL_ACCURACY throughout, paths of 100 on w8a, a9a, cina0 and
# mushrooms took 374, 302, 368 and 384 steps; with these two 282, 188, 240 and 205.
FINEST_MODEL_ACCURACY = 5e-4

# The predicted fall of Φ, relative to Φ, up to which a step in memory is taken for the last. With the default
# tolerance, steps that were the last on w8a, a9a, ijcnn1 and cina0 began at 4e-12 to 5e-8 above the minimum
# (with ℓ2 on cina0 2e-5), those before them at 6e-7 to 2e-5.
LAST_STEP_FALL = 1e-7

# Rows not in memory, where a step costs less than a pass: the accuracy of models of all features.
PASS_MODEL_ACCURACY = 1e-3

# The same with a choice of features: as accurate as the last model was right, down to this.
FINEST_PASS_MODEL_ACCURACY = 0.002

# Features up to which it does not pay to solve a model on the support of θ before the first sweep, where the
# signs are known. Paths of w8a, a9a and cina0 take 0.9 of the time; with the 22 features of ijcnn1, 1.07
# times. In fits from zero, where signs change, it does not pay: 1.3 times on mushrooms with λ_max/1000.
SIGNS_KNOWN_FEATURES = 50

# Flops of the sweeps between two solves on the support. (0.6e6 and 1.5e6: fits take 1.07 times as long;
# 8e6: 0.96, within the noise.)
SWEEP_FLOPS = 3e6

# The least and the most sweeps between two solves, whatever the size of the model.
LEAST_SWEEPS, MOST_SWEEPS = 20, 400

# Rounds of sweeps and a solve, at most.
MODEL_ROUNDS = 10

# Newton steps on the model of a smooth penalty, at most.
SMOOTH_STEPS = 30

# The same for several classes on the support, in a round.
SUPPORT_STEPS = 2

# Times that a step on the support is cut short before sweeping again.
SUPPORT_CUTS = 20

# Features in use from which on the factorisations of a model cost most of a step. A model then has fewer
# rounds, and its steps are cut short less often. With MODEL_ROUNDS and SUPPORT_CUTS, the simulated data
# "sparse" with λ_max/1000 and 1,500 features in use take 1.9 times as long; one round, 9 times.
LARGE_SUPPORT, LARGE_MODEL_ROUNDS, LARGE_SUPPORT_CUTS = 500, 3, 2

# Shorter steps tried on the support, down to the first crossing of zero.
SHORTER_STEPS = 5

# Unknowns, all classes together, up to which their tied equations are solved by a factorisation.
DIRECT_UNKNOWNS = 1200

# The residual of conjugate gradients on a model: no pass over the rows depends on it.
MODEL_CG_ACCURACY = 1e-3

# The residual of Newton's equations, relative to the gradient, at which conjugate gradients in memory stop.
# Tuned on rcv1_subset with ℓ2, λ = 1 and 0.01: 0.1 takes 1.07 and 1.40 times as long as 0.2, 0.3 1.10 and
# 1.12.
CG_FORCING = 0.2

# Which features a step looks at ---------------------------------------------------------------------------

# The share of what zero can hold from which on a pulled feature is watched.
WATCHED_PULL = 0.8

# Features of the first Gram matrix of a working set.
WORKING_SET_FIRST = 50

# How many times the features in use its later ones have.
WORKING_SET_GROWTH = 3

# The factor by which the certificate falls before the first look at all features.
WORKING_SET_FIRST_LOOK = 0.3

# The same between two other looks.
WORKING_SET_NEXT_LOOK = 1e-3

# The share of the features from which on choosing some costs more than it saves. (1/3: the simulated data
# "dense" with λ_max/10 take 1.3 times as long; 1: with λ_max/100 1.9 times. Cina0: the same with 1/3.)
WORKING_SET_SHARE = 0.7

# Features that coordinate descent watches first. (250: 1.06 times as long on rcv1_subset and leukemia;
# 1,000: 0.99; 2,000: 1.08.)
CD_FIRST = 500

# How many times the features in use it watches afterwards.
CD_GROWTH = 3

# Rows not in memory: features that may move first.
PASS_FIRST = 500

# How many times the features in use may move afterwards.
PASS_GROWTH = 2

# Coordinate descent along columns (`cd.py`) ---------------------------------------------------------------

# The violation at which a round of coordinate descent ends: as a share of the violation of all features, and
# of the last round's goal. (Tied to the violation outside alone, rounds crawl.) 0.2 and 0.3: on rcv1_subset
# and the simulated data "text" and "wide", with ℓ1 at λ_max/10 to λ_max/1000, fits take 1.09 times as long in
# the mean (0.9 to 2.0 times); four other pairs 1.03 to 1.13 times.
CD_GOALS = 0.1, 0.1

# The same where the watched features have few of all entries: sweeps cost next to nothing beside a look at
# all features, so there are fewer looks. On leukemia with λ_max/10, 8 looks become 5, and 10.9 ms 7.1; on
# rcv1_subset, whose watched features have many entries, fits would take 1.0 to 1.4 times as long.
CD_GOALS_IF_FEW = 0.05, 0.1

# The share of all entries up to which the CD_FIRST longest columns have few.
CD_FEW = 0.1

# How far the violation of coordinates that are near to moving falls before all are visited again.
CD_INNER_ACCURACY = 0.01

# Sweeps from one extrapolation to the next.
CD_EXTRAPOLATED_SWEEPS = 5

# Rounds of sweeps in one compiled call: the price of a Newton step falls with the support.
CD_ROUNDS_PER_CALL = 4

# Rounds of sweeps and a Newton step before the gradient of all features is looked at again.
CD_ROUNDS = 60

# The most entries of the Hessians on the support, of all classes together: of one class, 2,500 features and
# the intercept.
CD_HESSIAN_ENTRIES = 2501**2

# Newton steps at a time.
CD_NEWTON_STEPS = 2

# Conjugate gradient steps, at most, where the Hessians of several classes are too large.
CD_CG_STEPS = 250

# Their accuracy.
CD_CG_ACCURACY = 0.01

# How many times more a Newton step costs if the support is larger than the number of active rows.
SINGULAR_PRICE = 5.0

# Nanoseconds of work before a point underway is shown.
SHOWN_NS = 2e6

# Nanoseconds of one call of the compiled sweeps, at most: Ctrl-C waits for its end.
CALL_NS = 5e7

# Rows that are not in memory (`out_of_core.py`) -----------------------------------------------------------

# Features of one class whose Hessian travels with every pass.
PASS_FEATURES = 3000

# Entries of the Hessians of several classes.
PASS_ENTRIES = PASS_FEATURES**2

# Parts of a step whose loss a pass brings along.
SHORTER_PARTS = (0.5, 0.25, 0.0625, 1 / 256)

# The relative error of a predicted decrease up to which a model counts as right.
RIGHT_MODEL_ERROR = 0.3

# The share of the last predicted decrease up to which a model's Hessian is used once more.
REUSED_HESSIAN_FALL = 1 / 256

# Rows per feature with which a sample can tell how a Hessian changes.
SAMPLED_ROWS_PER_FEATURE = 8

# Steps of half-quadratic MM for a feature that is moved on its own.
SINGLE_FEATURE_STEPS = 20

# Passes for one solution of the equations of several classes, without their matrix.
JOINT_CG_PASSES = 20

# Work between two looks at Ctrl-C (`dual_newton.py`) ------------------------------------------------------

# Features whose products are summed up at a time.
DUAL_FEATURES_AT_A_TIME = 1024

# Rows that are copied at a time.
DUAL_ROWS_AT_A_TIME = 64
