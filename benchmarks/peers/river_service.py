"""A plain learning service as one writes it in an afternoon: FastAPI around river, everything in memory.

python benchmarks/peers/river_service.py PORT
"""

import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from river import linear_model, multioutput


class Item(BaseModel):
    features: dict[str, float]
    labels: dict[str, bool] | None = None


class Items(BaseModel):
    items: list[Item]


app = FastAPI()
model = multioutput.PerOutputClassifier(linear_model.LogisticRegression())


@app.post("/predict")
async def predict(item: Item):
    return {"labels": model.predict_one(item.features)}


@app.post("/learn")
async def learn(items: Items):
    for item in items.items:
        model.learn_one(item.features, item.labels)
    return {"learned": len(items.items)}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", timeout_keep_alive=60)
