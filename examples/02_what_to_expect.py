"""Before deploying: does the score separate right from wrong, and what does each alpha cost?"""

import numpy as np

import demur as dm

table = dm.simulate_pools(800, seed=3)
votes = dm.vote(table.answers, table.scores)
correct = votes.answer == table.gold
evidence = dm.Evidence.of(votes.key, correct)

at = dm.Separability.of(evidence, np.linspace(0, 0.9, 10))
print("threshold  answered  of those right  answered wrongly  right, withheld  separability gap")
for row in range(10):
    print(
        f"{at.threshold[row]:9.1f} {at.answered[row]:9.3f} {at.selective_accuracy[row]:15.3f} "
        f"{at.confident_error[row]:17.3f} {at.false_abstention[row]:16.3f} {at.separability_gap[row]:17.3f}"
    )

band = dm.AccuracyBand.of(evidence, threshold=[0.5])
print(
    f"\nAt 0.5 the accuracy of the answers is {band.predicted[0]:.3f}, with 95 % confidence at least "
    f"{band.lower_one_sided[0]:.3f} (at all thresholds at once; the paper's bound is ± {band.paper_half_width[0]:.2f})."
)

curve = dm.Frontier.of(evidence)
print(f"Frontier AUC {curve.auc:.3f}, over its width {curve.auc_normalised:.3f}; AUROC {curve.auroc:.3f}.")

for alpha in (0.2, 0.1, 0.05, 0.02):
    expected = dm.calibrate(votes, correct, alpha=alpha).forecast()
    right = expected.selective_accuracy_corrected
    print(f"alpha {alpha:4}: answers {expected.answered:.1%}, right {right:.1%} of the time")
