"""People are told: rules find what is wrong with a sync, alerts remember since when, channels carry it away.

From the bottom: what there is to look for (`kinds`), which rule holds for a sync (`rules`), what a run shows of it
(`conditions`, against `usual`), what becomes of an alert (`states`, which makes the messages durable), who looks when
(`judging`); beside them where messages go (`channels`), what they say (`words`) and how they get there (`sending`).
"""
