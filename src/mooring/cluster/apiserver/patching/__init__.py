"""What becomes of an object when somebody sends a part of it.

Flows in: the object as it is, and a patch. Flows out: the object as it shall be, or a refusal that
says what is wrong with the patch. `patch` is the door for all four types of them: JSON patches,
merge patches, strategic merge patches, and server-side apply with its field *managers*.
"""
