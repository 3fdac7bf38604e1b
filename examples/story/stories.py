"""Little stories by a grammar of our own: what the story model learns from. `python stories.py 5` prints five."""

# ruff: noqa: E501, SIM905  lists of words read best so

from __future__ import annotations

import argparse
import os
import random
import sys

NAMES = dict.fromkeys("Anna Clara Greta Ida Lena Mia Nora Rosa Tilda Vera Zoe".split(), "she") | dict.fromkeys("Ben Emil Finn Jonas Max Oskar Paul Theo Willy".split(), "he")
ANIMALS = "fox hedgehog rabbit squirrel mouse badger owl frog duck goat bear cat dog beaver snail".split()
TRAITS = "small brave shy curious sleepy cheerful clever patient stubborn gentle noisy quiet".split()
PLACES = [
    "in a hollow tree at the edge of the wood", "in a crooked house by the river", "under the roots of an old oak", "on a hill above the village",
    "beside a pond full of lilies", "in a lighthouse by the sea", "behind the mill", "in a garden with a high wall",
]  # fmt: skip
WEATHER = ["One windy morning", "One warm evening", "On the first day of spring", "One rainy afternoon", "On a night full of stars", "One snowy day"]
TREASURES = {
    "red kite": "It flew higher than the clouds", "little boat": "It sailed all the way to the island", "warm scarf": "It was soft as a feather",
    "silver bell": "It rang as clear as water", "paper lantern": "It shone like a small moon", "wooden flute": "It sang like a bird",
    "honey cake": "It smelled of summer", "blue umbrella": "It was as big as a tent",
}  # fmt: skip
LOSSES = ["the wind took it away", "it fell into the river", "it rolled down the hill", "a cheeky magpie stole it", "it got lost in the tall grass"]
SEARCHES = [
    "{He} looked behind every stone, but it was not there", "{He} asked the bees, but they were too busy", "{He} climbed the tallest tree and saw nothing",
    "{He} followed the tracks until they ended", "{He} called and called, and only the echo answered",
]  # fmt: skip
FINDS = [
    "saw something shine between the leaves", "heard a small sound in the bushes", "had a clever idea", "knew a secret path through the reeds",
    "dived into the cold water", "made a long rope of grass",
]  # fmt: skip
THANKS = ["shared a pot of tea", "danced until the moon came up", "ate pancakes with blueberries", "sat by the fire and told stories", "laughed until their bellies hurt"]
MORALS = [
    "And from that day on they were friends", "And that is how two strangers became friends", "Since then they have looked for lost things together",
    "A thing that is shared, they say, is never lost", "And if they have not moved away, they live there still",
]  # fmt: skip
GREETINGS = ["Why are you sad?", "What are you looking for?", "Can I help you?", "You look as if you had lost something."]
ANSWERS = ["I have lost my {what}", "My {what} is gone", "I can not find my {what}"]


def story(rng: random.Random) -> str:
    """One story of about ten sentences."""
    name, friend = rng.sample(list(NAMES), 2)
    animal, other = rng.sample(ANIMALS, 2)
    trait, second = rng.sample(TRAITS, 2)
    what, praise = rng.choice(list(TREASURES.items()))
    he = NAMES[name]
    his = {"he": "his", "she": "her"}[he]
    lines = [
        rng.choice([f"Once upon a time there was a {trait} {animal} called {name}", f"There once lived a {trait} {animal} whose name was {name}"]),
        f"{name} lived {rng.choice(PLACES)}",
        rng.choice([f"What {he} loved most was {his} {what}", f"{he.capitalize()} had a {what} and took it everywhere"]) + f". {praise}",
        f"{rng.choice(WEATHER)} {rng.choice(LOSSES)}",
        rng.choice([f"{name} was very sad", f'"Oh no!" cried {name}', f"{name} sat down and sighed"]),
        rng.choice(SEARCHES).format(He=he.capitalize()),
        f"Then a {second} {other} came along. {NAMES[friend].capitalize()} was called {friend}",
        f'"{rng.choice(GREETINGS)}" asked {friend}. "{rng.choice(ANSWERS).format(what=what)}," said {name}',
        rng.choice([f"{friend} {rng.choice(FINDS)}", f"So they went together, and {friend} {rng.choice(FINDS)}"]) + f". There was the {what}!",
        rng.choice([f'"Thank you!" said {name}', f"{name} jumped for joy", f"{name} hugged {friend}"]) + f". They {rng.choice(THANKS)}",
        rng.choice(MORALS),
    ]
    text = ". ".join(lines).replace("!.", "!").replace("?.", "?") + "."
    return text.replace(" a owl", " an owl")


if __name__ == "__main__":
    random_stories = random.Random()
    parser = argparse.ArgumentParser(description="Print stories by a grammar.")
    parser.add_argument("count", nargs="?", type=int, default=3, help="how many (default: %(default)s)")
    try:
        for _ in range(parser.parse_args().count):
            print(story(random_stories), end="\n\n")
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read has heard enough; what is left must go nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
