def up(options: object) -> int: return 0
