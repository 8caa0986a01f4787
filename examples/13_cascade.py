"""Ask a few paths first and many only if needed: one promise for both stages and the person behind them."""

import demur as dm

table = dm.simulate_pools(3000, n_paths=16, seed=5)
ids = [f"q{i}" for i in range(3000)]
few, many = dm.vote(table.answers[:, :4], ids=ids), dm.vote(table.answers, ids=ids)
cheap, dear = (dm.VotedPools.of(votes, votes.answer == table.gold) for votes in (few, many))
stages = [dm.Stage("few", cheap), dm.Stage("many", dear)]  # a stage costs its number of paths, unless told otherwise
cascade = dm.calibrate_cascade(stages, alpha=0.1, hold_out=0.5)
print(cascade.summary())
print("\n" + dm.audit_cascade(cascade, [cheap, dear]).verdict)  # on the half held out
