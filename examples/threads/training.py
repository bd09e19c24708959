"""A training by one of three libraries: `training.py lightgbm`, `xgboost` or `sklearn`. All start OpenMP threads."""
import sys

import numpy

numbers = numpy.random.default_rng(1)
x = numbers.random((20_000, 30))
y = 3 * x[:, 0] + numbers.random(20_000)
match sys.argv[1]:
    case "lightgbm":
        import lightgbm

        options = {"verbosity": -1, "force_col_wise": True}
        lightgbm.train(options, lightgbm.Dataset(x, y), 100)
    case "xgboost":
        import xgboost

        xgboost.train({"tree_method": "hist"}, xgboost.DMatrix(x, y), 100)
    case "sklearn":
        from sklearn.ensemble import HistGradientBoostingRegressor

        HistGradientBoostingRegressor(max_iter=60, early_stopping=False).fit(x, y)
