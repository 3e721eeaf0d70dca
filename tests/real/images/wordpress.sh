#!/bin/sh
# Copies the program into /var/www/html where that has none, and writes its configuration from the environment.
set -eu
cd /var/www/html
if [ ! -e index.php ]; then
  tar -C /usr/src/wordpress --exclude=./wp-config.php -chf - . | tar -xf -
  chown -R www-data: .
  echo "WordPress is copied to /var/www/html"
fi
if [ ! -e wp-config.php ]; then
  cat > wp-config.php <<'PHP'
<?php
define('DB_HOST', getenv('WORDPRESS_DB_HOST'));
define('DB_NAME', getenv('WORDPRESS_DB_NAME'));
define('DB_USER', getenv('WORDPRESS_DB_USER'));
define('DB_PASSWORD', getenv('WORDPRESS_DB_PASSWORD'));
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
$table_prefix = 'wp_';
if (($_SERVER['HTTP_X_FORWARDED_PROTO'] ?? '') === 'https') { $_SERVER['HTTPS'] = 'on'; }
if (!defined('ABSPATH')) { define('ABSPATH', __DIR__ . '/'); }
require_once ABSPATH . 'wp-settings.php';
PHP
  chown www-data: wp-config.php
fi
exec "$@"
