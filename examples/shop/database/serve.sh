# A database of lines: reads commands from a connection and answers on it.
#   add NAME   keep a name, once
#   list       all names, in order
#   ping       pong
mkdir -p "$FOLDER"
touch "$FOLDER/names"
while read -r command name; do
  case $command in
    add) grep -qxF "$name" "$FOLDER/names" || echo "$name" >> "$FOLDER/names" ;;
    list) sort "$FOLDER/names" ;;
    ping) echo pong ;;
    end) echo done; exit ;;
  esac
done
