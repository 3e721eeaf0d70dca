<?php
$db = new PDO('mysql:host=db;dbname=' . getenv('MARIADB_DATABASE'), getenv('MARIADB_USER'), getenv('MARIADB_PASSWORD'));
$db->exec('CREATE TABLE IF NOT EXISTS guests (id serial, name text)');
header('Content-Type: text/plain');
if ($_SERVER['REQUEST_METHOD'] === 'POST') {
    $name = file_get_contents('php://input');
    file_put_contents('/srv/uploads/last', $name);
    $db->prepare('INSERT INTO guests (name) VALUES (?)')->execute([$name]);
    echo "added\n";
} else {
    foreach ($db->query('SELECT name FROM guests ORDER BY id') as $row) {
        echo $row['name'], "\n";
    }
}
