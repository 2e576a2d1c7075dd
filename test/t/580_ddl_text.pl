# Statements that change tables, on a real server: the definition that their text makes is the one that the server has afterwards.
# cells: mariadb-15 mysql-18
# also: mariadb118-15
#
# Each case makes a table, runs a statement, and asks the server for the definition before and after (CdcBridge::TableText); the reader of
# statements gets the text of SHOW CREATE TABLE and the statement. Without the extension: no PostgreSQL takes part.

use strict;
use warnings;

use CdcBridge::Source;
use CdcBridge::TableText;
use Test::More;

my $source = CdcBridge::Source->new;
my $reader = CdcBridge::TableText->new($source);
my $dbh = $reader->{dbh};
my $is_mariadb = $source->is_mariadb;
my $base = "create table t (id int not null primary key, a int, b varchar(20) default 'x', c datetime, key k (a, b(5)))";
my %only = (mysql => !$is_mariadb, mariadb => $is_mariadb, '11.8' => $is_mariadb && $source->version >= 110800);
my (@titles, @refused);

# title, statements that make the table, the statement; what is needed, the table's name behind it, sql_mode, flags that are wanted
sub case
{
	my ($title, $make, $statement, %option) = @_;
	return if $option{only} && !$only{ $option{only} };
	$dbh->do('drop database if exists db');
	$dbh->do('create database db character set utf8mb4');
	$dbh->do('use db');
	$dbh->do($_) for ref $make ? @$make : $make;
	my $error = $reader->add($statement, 'db', $option{table} // 't', %option);
	push @refused, "$title: $statement: $error" if $error;
	push @titles, { title => "$title: $statement" =~ s/[\x00-\x1f]/ /gr =~ s/#/%/gr, %option } unless $error;
}

# One column, added to a table with one column; every one in one statement would hide whose fault it is.
sub column { my ($title, $column, %option) = @_; case($title, 'create table t (id int primary key)', "alter table t add column c $column", %option); }

# The same for CREATE TABLE alone. make => other tables
sub created
{
	my ($title, $statement, %option) = @_;
	return if $option{only} && !$only{ $option{only} };
	$dbh->do('drop database if exists db');
	$dbh->do('create database db character set utf8mb4');
	$dbh->do('use db');
	$dbh->do($_) for @{ $option{make} // [] };
	eval { $dbh->do($statement); 1 } or push(@refused, "$title: $statement: $@"), return;
	$reader->add_created($statement, 'db', $option{table} // 't');
	push @titles, { title => "$title: $statement" =~ s/[\x00-\x1f]/ /gr =~ s/#/%/gr, %option };
}

# ------------------------------------------------------------------ types

column('M3', $_) for 'boolean', 'bool not null default true', 'real', 'real(5,2)', 'nchar(3)', 'nvarchar(5)', 'nchar varchar(3)', 'national character varying(4)',
  'integer unsigned', 'int4', 'int1', 'middleint', 'int8', 'long', 'long varchar', 'long varbinary', 'dec', 'dec(5)', 'fixed(6,1)', 'numeric(8,3) unsigned',
  'double precision', 'double precision(10,3)', 'float(5,2)', 'float(24)', 'float(25)', 'float4', 'float8 unsigned', 'character varying(7)', 'char varying(7)',
  'varcharacter(5)', 'char(5) byte', 'char byte', 'varchar(10) character set binary', 'text charset binary', 'text byte', 'text(10)', 'text(300)', 'text(20000000)',
  'blob(10)', 'blob(70000)', 'tinytext', 'mediumtext', 'longtext', 'tinyblob', 'mediumblob', 'longblob', 'char', 'char(0)', 'binary', 'binary(5)', 'varbinary(5)',
  'varchar(10) unicode', 'char(5) binary', 'varchar(9) collate utf8mb4_bin', 'varchar(9) charset latin1 collate latin1_bin', 'bit', 'bit(17)', 'year', 'year(4)',
  'date', 'time', 'time(6)', 'datetime(3)', 'timestamp(6) null', 'json', 'geometry', 'point', 'multilinestring', 'geometrycollection', 'decimal', 'decimal(0,0)',
  'decimal(65,30)', 'bigint', 'smallint(3)', 'mediumint signed', 'tinyint', 'tinyint(2)';
case('M3: SERIAL', 'create table t (a int)', 'alter table t add c serial', key => 1);
case('M3: SERIAL DEFAULT VALUE', 'create table t (a int)', 'alter table t add c int serial default value', key => 1);
case('M3: REAL_AS_FLOAT', 'create table t (a int)', 'alter table t add c real, add d double', mode => [ 'REAL_AS_FLOAT', 1 ]);
column('M4', $_) for 'int zerofill', 'int(5) zerofill default 7', 'int zerofill unsigned', 'decimal(5,2) zerofill default 1.5', 'float zerofill';
column('M5', $_) for 'tinyint(1)', 'tinyint(1) unsigned', 'tinyint(1) default 1', 'tinyint(1) zerofill';
column('M18', $_) for q{enum('a','b ','c''d','e,f','g"h','i\\\\j','(k)')}, q{enum("x",'y') not null}, q{enum(x'61','b')}, q{set('x','y') default 'y,x'},
  q{enum('é','ß','日本') default 'ß'}, q{enum('a') charset latin1}, q{set('a','b') charset binary}, q{enum('unsigned','zerofill','tinyint(1)')};
column('types', $_, only => 'mysql') for 'vector(3)', 'vector', 'geomcollection', 'point srid 4326', 'int column_format fixed storage disk', 'int visible', 'int not secondary';
column('types', $_, only => 'mariadb') for 'uuid', 'inet4', 'inet6', 'uuid default uuid()', "inet6 default '::1'", 'varchar(10) compressed', 'blob compressed=zlib',
  'point ref_system_id=4326';
column('types', $_, only => '11.8') for 'vector(3) not null';

# ------------------------------------------------------------------ defaults

column('D15', "$_") for 'int default -1', 'int default +3', q{int default '7'}, 'int default 1.6', 'int default 1e2', 'int default 0x41', q{int default b'101'}, 'int default true',
  'decimal(10,2) default -1.', 'decimal(10,2) default 1e3', q{decimal(10,2) default '1.5'}, 'decimal(10,2) default .005', 'decimal(30,10) default 12345678901234567890.0123456789',
  'double default 1e3', 'double default 1E+30', 'double default 1.50', 'double default -0.0', 'double default .5', 'double default 1e-7', 'double default 1e-20',
  'double default 100000000000000000000', 'double default 123456789012345', 'double default 1.7976931348623157e308', 'double(8,3) default 1.5', 'float default 123456789',
  'float default 1.23456789', 'float default 0.1', q{varchar(20) default 'it''s'}, q{varchar(20) default "it's"}, q{varchar(20) default 'a' 'b'}, q{varchar(20) default _utf8mb4'x'},
  q{varchar(20) default x'41'}, 'varchar(20) default 0x4142', q{varchar(20) default b'1000001'}, q{varchar(20) default n'nat'}, q{varchar(20) default 'b\\\\s\\n\\t\\'\\"\\%\\_z'},
  q{varchar(20) default ''}, 'varchar(20) default null', 'varchar(20) default true', 'varchar(20) default 1.50', 'varchar(20) default -5', 'varchar(20) default 1e3',
  q{varchar(20) default 'NULL'}, q{char(9) default '  a '}, q{varchar(20) character set latin1 default 'é'}, q{bit(4) default b'101'}, 'bit(4) default 5', q{bit(8) default 'a'},
  'bit(4) default 0x5', 'bit(3) default 0', q{varbinary(10) default 'ab'}, q{varbinary(10) default x'6162'}, 'varbinary(10) default 5', 'datetime(6) default now(6)',
  'datetime default current_timestamp on update current_timestamp', 'datetime(3) default current_timestamp(3) on update current_timestamp(3)', 'datetime on update now()',
  'timestamp default localtimestamp()', 'timestamp not null', q{timestamp(3) not null default '2020-01-02 03:04:05'}, q{datetime default '2020-01-02'},
  q{datetime(3) default '2020-01-02 03:04:05.1'}, q{datetime default '2020-01-02T03:04:05'}, q{datetime default '20200102030405'}, 'datetime default 20200102030405',
  q{datetime default '2020-01-02 03:04:05.6'}, q{datetime(1) default '2020-01-02 03:04:59.97'}, q{date default '2020-1-2'}, 'date default 20200102', q{date default '2020-01-02 10:00:00'},
  q{time default '1:2:3'}, 'time default 10', q{time(3) default '1:2:3.5'}, q{time default '11:12'}, q{time default '-100:00:00'}, 'year default 99', q{year default '2020'}, 'year default 0',
  q{enum('a','b') default 'b'}, q{enum('a','b') not null default 'A'}, q{set('a','b') default 'b,a'}, q{set('a','b') default ''}, 'int default (1+2)', 'int default (id+1)', 'int default ( 5 )',
  q{int default ('5')}, 'int default (-5)', 'json default (json_object())', q{json default ('{}')}, q{text default ('abc')}, 'date default (curdate())', 'date default (current_date)',
  'datetime default (now())', q{varchar(30) default (concat('a',"b)"))}, q{varchar(9) default ('a)b') comment 'c'}, 'bigint default 9223372036854775807';
# MariaDB 11.8 takes LOCALTIME for a time of the day
column('D15', 'timestamp default localtime') unless $only{'11.8'};
case('D15: TIME_TRUNCATE_FRACTIONAL', $base, q{alter table t add d datetime(1) default '2020-01-02 03:04:05.67', add e time default '1:2:3.9'}, mode => [ 'TIME_TRUNCATE_FRACTIONAL', 2**32 ], only => 'mysql');
case('D15: TIME_ROUND_FRACTIONAL', $base, q{alter table t add d datetime(1) default '2020-01-02 03:04:05.67', add e time default '1:2:3.9'}, mode => [ 'TIME_ROUND_FRACTIONAL', 2**34 ], only => 'mariadb');
case('M3: ORACLE', $base, q{alter table t add d varchar2(5), add e clob, add f blob, add g raw(7), add h number(8,2), add i number, add j date, add "k" int}, mode => [ 'ORACLE', 0x204 ], only => 'mariadb');
column('D15', $_, only => 'mariadb') for q{timestamp not null default 0}, 'varchar(40) default uuid()', 'date default curdate()', q{date default date'2020-01-02'}, q{time default time'10:11:12'},
  q{text default 'abc'}, q{json default '{}'}, q{binary(4) default 'ab'}, 'int default if(1,2,3)', q{datetime default timestamp'2020-01-02 03:04:05'};
case('D15: nextval', [ 'create sequence s', 'create table t (a int)' ], 'alter table t add c bigint default nextval(s), add d bigint default next value for s', only => 'mariadb');
case('D15: SET DEFAULT, DROP DEFAULT', $base, q{alter table t alter a set default 7, alter column b drop default, alter c set default '2020-01-01'});
case('D15: SET DEFAULT to an expression', $base, 'alter table t alter column a set default (1+1), alter c set default current_timestamp', only => 'mariadb');
case('D15: SET DEFAULT to an expression', $base, 'alter table t alter column a set default (1+1), alter c set default (now())', only => 'mysql');

# ------------------------------------------------------------------ text

case('D1: a NUL at the end', $base, "alter table t drop a\0");
case('D2: ANSI_QUOTES', $base, q{alter table "t" change "a" "x ""y" int comment 'z', add "b2" char(3) default 'q'}, mode => [ 'ANSI_QUOTES', 4 ]);
case('D2: NO_BACKSLASH_ESCAPES', $base, q{alter table t add d varchar(9) default 'a\\', add e varchar(9) default 'b\\\\'}, mode => [ 'NO_BACKSLASH_ESCAPES', 0x100000 ]);
case('D3: comments', $base, "/* x */ alter # y\n table -- z\n t --\tw\n add /*! column */ d int /*!40100 not null */, /* drop a, */ add e int");
case('D3: executable comments of the other server', $base, 'alter table t add d int /*!80023 invisible */ /*M! comment \'m\' */ /*!50503 default 3 */');
case('D3: over several lines', $base, "alter\n\ttable\r\n t\n add\n (d int,\n  e int)");
case('D4: keywords in literals', $base, q{alter table t add d varchar(40) default 'drop column a, add x int' comment 'a "b" c, primary key (a)', add e int comment "it's -- /* not"});
case('D4: names that look like words', $base, 'alter table t add beginning int, add column_x int, add `key` int, add `primary` int unique, add comment int, add type int, add status int, add date date');
case('D17: names', $base, 'alter table db.t change a `a.b` int, add `c d` int, add `e\\` int, add `1f` int, add `g#h` int, add `@0023` int, add `ü` int, add 2x int');
case('D17: qualified names of columns', $base, 'alter table db.t change db.t.a z int, drop t.c', only => 'mariadb');
case('D17: a table of an odd name', 'create table `o``dd.t #1` (id int primary key, a int)', 'alter table `o``dd.t #1` drop column a, add b int', table => 'o`dd.t #1');
case('D17: 64 characters', $base, 'alter table t add `' . 'n' x 64 . '` int, add unique (`' . 'n' x 64 . '`)');
case('D17: names in other case', $base, 'alter table t drop COLUMN A, change B Bb varchar(20), add index K2 (ID, bB)');

# ------------------------------------------------------------------ columns

case('D7: many clauses', $base, q{alter table t rename to t2, change a aa bigint not null default 0, modify b varchar(40), add (d int, e date), drop c, engine=innodb, comment 'x', algorithm=copy, add f int first},
	now => 't2');
case('D7: options', $base, q{alter table t engine = InnoDB comment = 'a, drop a' auto_increment = 100 row_format=dynamic, force, add d int, lock=shared, order by b desc, a});
case('D7: ADD with indexes in a list', $base, 'alter table t add (d int not null, e int, unique key u (d), index (e, d))');
case('D7: ADD COLUMN (list)', $base, 'alter table t add column (d int unsigned, e decimal(5,2)), add column f text');
case('D7: ENGINE', $base, 'alter table t engine=MyISAM');
case('D7: RENAME AS', $base, 'alter table t rename as db.t9', now => 't9');
case('D11: DROP and ADD of one name', $base, 'alter table t drop c, add c varchar(10) first');
case('D11: ADD FIRST, AFTER', $base, 'alter table t add d int first, add e int after a, add f int after e, add g int after d');
case('D11: AFTER names a column that is new, or renamed', $base, 'alter table t change a z int, add d int after z, add e int after d');
case('D12: MODIFY that moves', $base, 'alter table t modify a int first, modify c datetime after a, modify id int after b');
case('D12: moved behind what moves', $base, 'alter table t modify a int after c, modify b varchar(20) after a, add d int after b');
case('D12: moved one after the other', 'create table t (a int, b int, c int, d int, e int)', "alter table t $_") for 'modify b int after d, modify d int first', 'modify b int after d, modify d int after e',
  'modify d int after e, modify b int after d', 'modify a int after b, modify b int after a', 'add x int after y, change b y int first', 'modify e int first, add x int, modify a int after x, add y int first',
  'change e z int after a, add x int after z, drop b, modify a int after x';
case('D13: NOT NULL without a default', $base, q{alter table t add d int not null, add e enum('q','w') not null, add f varchar(5) not null, add g datetime(3) not null});
case('D14: CHANGE drops what it does not name', q{create table t (id int not null auto_increment primary key comment 'k', a int not null default 5 comment 'c')}, 'alter table t change a b int, modify id bigint');
case('D14: MODIFY of a key column', 'create table t (a int, b varchar(9), primary key (a, b))', 'alter table t modify b varchar(20), change a z bigint unsigned');
case('columns: RENAME COLUMN, a swap', $base, 'alter table t rename column a to b, rename column b to a', only => $_) for 'mysql', 'mariadb';
case('columns: CHANGE, a swap', $base, 'alter table t change a b int, change b a varchar(20)');
case('columns: RENAME COLUMN with other clauses', $base, 'alter table t rename column a to z, alter column b set default \'q\', add d int after z, drop c');
case('columns: generated', $base, q{alter table t add d int as (a+1), add e int generated always as (a*2) stored comment 's', add f varchar(50) as (concat(b, ',x', ")")) virtual});
case('columns: generated NOT NULL', $base, 'alter table t add d int generated always as (id+1) stored not null, add e int as (id) unique', only => 'mysql');
case('columns: INVISIBLE', $base, 'alter table t add d int invisible, add e int default 5 invisible comment \'i\'');
case('columns: SET INVISIBLE', $base, 'alter table t alter column a set invisible, alter b set visible', only => 'mysql');
case('columns: CHECK', $base, 'alter table t add d int check (d > 5 and d < (10)), add constraint cc check (a > 0), add check (id > 0)');
case('columns: CHECK NOT ENFORCED', $base, 'alter table t add d int constraint dd check (d > 5) not enforced, add constraint cc check (a > 0) not enforced', only => 'mysql');
case('columns: AUTO_INCREMENT', 'create table t (a int)', 'alter table t add id bigint unsigned not null auto_increment primary key first', key => 1);
case('columns: NULL in many ways', $base, 'alter table t add d int not null null, add e int null not null, add f int default 5 default 6, modify a int not null');
case('columns: charset conversions', q{create table t (id int primary key, a varchar(10), b char(5) default 'b', e enum('x','y'))}, 'alter table t convert to character set utf8mb4 collate utf8mb4_bin');
case('columns: CONVERT TO binary', q{create table t (id int primary key, a varchar(10), b char(5), c text, e enum('x','y'))}, 'alter table t convert to character set binary');
case('columns: DEFAULT CHARACTER SET', $base, 'alter table t default character set latin1, add d varchar(5)');
case('D21: IF EXISTS on every clause', $base,
	q{alter table if exists t add column if not exists a int, add column if not exists d int, drop column if exists zz, modify column if exists b varchar(30), change column if exists yy y2 int, }
	  . q{add index if not exists k (c), add index if not exists k2 (c), drop index if exists nope, alter column if exists a set default 3, add unique if not exists u (c)}, only => 'mariadb');
case('D21: ADD IF NOT EXISTS of what is dropped', $base, 'alter table t add column if not exists c int, drop c', only => 'mariadb');
case('D21: ADD COLUMN IF NOT EXISTS (list)', $base, 'alter table t add column if not exists (a int unique, d int unique)', only => 'mariadb');
case('D21: RENAME COLUMN IF EXISTS', $base, 'alter table t rename column if exists a to z, rename column if exists q to w, rename index if exists k to k9', only => 'mariadb');
case('D21: WAIT, NOCOPY', $base, 'alter table t wait 5 add d int, algorithm=nocopy', only => 'mariadb');
case('D21: NOWAIT', $base, 'alter online table t nowait add d int', only => 'mariadb');
case('D21: SET STATEMENT', $base, q{set statement max_statement_time=10, sql_mode='' for alter table t add d int}, only => 'mariadb');
case('D21: SYSTEM VERSIONING', $base, 'alter table t add system versioning', only => 'mariadb');
case('D21: SYSTEM VERSIONING with columns', $base,
	'alter table t add column s timestamp(6) generated always as row start, add column e timestamp(6) generated always as row end, add period for system_time(s, e), add system versioning', only => 'mariadb');
case('D21: DROP SYSTEM VERSIONING', [ 'create table t (id int primary key, a int) with system versioning', q{set system_versioning_alter_history = keep} ], 'alter table t drop system versioning, add b int', only => 'mariadb');
case('D21: application periods', 'create table t (id int, s date, e date)', 'alter table t add period for p(s, e), add unique (id, p without overlaps)', only => 'mariadb');
case('D21: PAGE_COMPRESSED, TRANSACTIONAL', $base, q{alter table t page_compressed=1 page_compression_level=5, add d int}, only => 'mariadb');
case('D21: CONVERT TO CHARSET', $base, 'alter table t convert to charset utf8mb3', only => 'mariadb');

# ------------------------------------------------------------------ partitions

my $partitioned = 'create table t (id int primary key, a int) partition by range (id) (partition p0 values less than (10), partition p1 values less than (20), partition p2 values less than maxvalue)';
case('D19: DROP PARTITION', $partitioned, 'alter table t drop partition p0, p1', moves => 1);
case('D19: TRUNCATE PARTITION', $partitioned, 'alter table t truncate partition p0', moves => 1);
case('D19: REORGANIZE PARTITION', $partitioned, 'alter table t reorganize partition p0, p1 into (partition q values less than (20))');
case('D19: EXCHANGE PARTITION', [ $partitioned, 'create table x (id int primary key, a int)' ], 'alter table t exchange partition p0 with table x' . ($is_mariadb ? '' : ' without validation'), moves => 1);
case('D19: COALESCE PARTITION', 'create table t (id int primary key) partition by hash (id) partitions 4', 'alter table t coalesce partition 2');
case('D19: ADD PARTITION', 'create table t (id int primary key) partition by hash (id) partitions 4', 'alter table t add partition partitions 2');
case('D19: PARTITION BY behind a clause', $base, 'alter table t add d int partition by hash (id) partitions 3');
case('D19: PARTITION BY behind options', $base, q{alter table t comment='p' partition by key (id) partitions 3});
case('D19: REMOVE PARTITIONING', $partitioned, 'alter table t remove partitioning');
case('D19: REBUILD PARTITION', $partitioned, 'alter table t rebuild partition all');
case('D19: DROP PARTITION IF EXISTS', $partitioned, 'alter table t drop partition if exists p0', moves => 1, only => 'mariadb');
case('D19: CONVERT PARTITION', $partitioned, 'alter table t convert partition p0 to table x', moves => 1, only => 'mariadb');

# ------------------------------------------------------------------ keys and indexes

case('D31: DROP PRIMARY KEY', $base, 'alter table t drop primary key', key => 1);
case('D31: another PRIMARY KEY', $base, 'alter table t modify a int not null, drop primary key, add constraint named primary key using btree (a, id)', key => 1);
case('D31: RENAME of a key column', $base, 'alter table t rename column id to pk');
case('D31: DROP of the key column', 'create table t (id int auto_increment primary key, a int)', 'alter table t drop id', key => 1);
case('D31: PRIMARY KEY in a column', 'create table t (a int)', 'alter table t add id int primary key first', key => 1);
case('D31: KEY in a column', 'create table t (a int)', 'alter table t add id int key comment \'k\'', key => 1);
case('D31: UNIQUE in a column', 'create table t (a int)', 'alter table t add u int not null unique key', key => 1);
case('D31: a nullable unique index is no key', 'create table t (a int, unique (a))', 'alter table t add b int');
case('D31: ... until it is NOT NULL', 'create table t (a int, unique (a))', 'alter table t modify a int not null', key => 1);
case('D31: ... and no longer', 'create table t (a int not null, unique (a))', 'alter table t modify a int', key => 1);
case('D31: the first of several unique indexes', 'create table t (a int not null, b int not null, c int, unique u1 (c), unique u2 (b), unique u3 (a))', 'alter table t drop index u2', key => 1);
case('D31: SERIAL PRIMARY KEY has both', 'create table t (id serial primary key, a int)', 'alter table t drop index id', only => 'mysql');
created('D31: several keys in a column', $_) for 'create table t (a int unique primary key, b int unique unique key) engine=innodb', 'create table t (id serial primary key) engine=innodb',
  'create table t (a int unique, unique (a), key (a)) engine=innodb';
case('D31: a prefix as primary key', 'create table t (a text not null)', 'alter table t add primary key (a(10))', key => 1);
case('D31: CREATE UNIQUE INDEX', 'create table t (a int not null)', 'create unique index u on t (a)', key => 1);
case('D31: DROP INDEX', 'create table t (a int not null, unique u (a))', 'drop index u on t', key => 1);
case('D31: DROP INDEX PRIMARY', $base, 'drop index `PRIMARY` on t', key => 1);
case('D32: prefixes', 'create table t (a varchar(20), b text, c varbinary(30))', 'alter table t add index (a(20)), add index (a(5), b(10)), add key z (c(3) desc)');
case('D32: a prefix and a narrower column', 'create table t (a varchar(20), b int, key k (a(10), b))', 'alter table t modify a varchar(8)');
case('D32: a prefix and another type', 'create table t (a varchar(20), b int, key k (a(10), b))', 'alter table t modify a int');
case('D32: expressions', $base, 'alter table t add index ((a + 1), b), add unique index u ((lower(b)))', only => 'mysql');
case('D32: INVISIBLE', $base, 'alter table t add index i (c) invisible, alter index k invisible', only => 'mysql');
case('D32: IGNORED', $base, 'alter table t add index i (c) ignored, alter index k ignored', only => 'mariadb');
case('D32: FULLTEXT, SPATIAL', 'create table t (id int primary key, a text, g point not null' . ($is_mariadb ? '' : ' srid 0') . ')', 'alter table t add fulltext index f (a), add spatial index s (g)');
case('D32: CREATE FULLTEXT INDEX', 'create table t (id int primary key, a text, b int)', 'create fulltext index f on t (a) comment \'x\'');
# MariaDB 11.8 shows a HASH that is none
case('D32: USING', $base, q{create index i using } . ($only{'11.8'} ? 'btree' : 'hash') . q{ on t (a) key_block_size=4 comment 'c, d' algorithm=inplace lock=none});
case('D32: UNIQUE USING HASH', 'create table t (a int not null)', 'create unique index u using hash on t (a)', key => !$is_mariadb);
case('D32: MEMORY', 'create table t (id int primary key, a int) engine=memory', 'alter table t add index (a), add index b using btree (a)');
case('D32: names that the server makes', $base, 'alter table t add index (a), add index (a), add unique (a, b), add index (id, a)');
case('D32: RENAME INDEX', $base, 'alter table t rename index k to kk, add index k (c)');
case('D32: DROP and ADD of one name', $base, 'alter table t drop index k, add index k (c), add index l (a)');
case('D32: columns that go take parts along', 'create table t (id int primary key, a int, b int, c int, key k1 (a, b), key k2 (b), key k3 (c, b))', 'alter table t drop b');
case('D32: order of unique indexes', 'create table t (id int primary key, a varchar(20) not null, b varchar(20) not null, c int, d int not null)',
	'alter table t add unique u1 (c), add unique u2 (a(5)), add unique u3 (b), add fulltext f (a), add index n (c), add unique u4 (d), add unique u5 (a(3), c)');
case('D32: OR REPLACE', $base, 'create or replace index k on t (c)', only => 'mariadb');
case('D32: IF NOT EXISTS', $base, 'create index if not exists k on t (c)', only => 'mariadb');
case('D32: unique over long values', 'create table t (id int primary key, a text, b varchar(2000))', 'alter table t add unique ua (a), add unique (b)', only => 'mariadb');
case('D32: a vector index', 'create table t (id int primary key, v vector(3) not null)', 'alter table t add vector index (v) m=8 distance=cosine', only => '11.8');
my $parent = 'create table p (x int primary key, y varchar(10) unique)';
case('D32: foreign keys', [ $parent, $base ], 'alter table t add constraint f foreign key (a) references p (x) on delete cascade on update set null, add foreign key (b) references p (y) on update cascade');
case('D32: a foreign key makes an index', [ $parent, 'create table t (id int primary key, a int)' ], 'alter table t add constraint f foreign key (a) references p (x)');
case('D32: ... unless there is one', [ $parent, 'create table t (id int primary key, a int, b int, key k (a, b))' ], 'alter table t add foreign key (a) references p (x) on delete cascade');
case('D32: DROP FOREIGN KEY', [ $parent, 'create table t (id int primary key, a int, constraint f foreign key (a) references p (x) on delete cascade)' ], 'alter table t drop foreign key f');
case('D32: a column of a foreign key is renamed', [ $parent, 'create table t (id int primary key, a int, constraint f foreign key (a) references p (x) on delete cascade)' ], 'alter table t change a b int');
case('D32: REFERENCES in a column', [ $parent, 'create table t (id int primary key)' ], 'alter table t add a int references p (x) on delete set null', only => $_) for 'mysql', 'mariadb';
case('D32: an index made for a foreign key goes when another serves it', [ $parent, 'create table t (id int primary key, a int, constraint f foreign key (a) references p (x) on delete cascade)' ], 'alter table t add index z (a, id)');
case('D32: names in FOREIGN KEY', [ $parent, 'create table t (id int primary key, a int)' ], 'alter table t add foreign key idx (a) references p (x) on delete cascade');
case('D32: DROP CONSTRAINT', [ $parent, 'create table t (id int primary key, a int, b int, constraint f foreign key (a) references p (x) on delete cascade, constraint cc check (a > 1), unique u (b))' ],
	'alter table t drop constraint f, drop constraint cc');

# ------------------------------------------------------------------ CREATE TABLE

created('D10: IF NOT EXISTS', 'create table if not exists db.t (a int primary key, b int unique) engine=innodb');
created('D10: OR REPLACE', 'create or replace table t (a int) engine=innodb', only => 'mariadb');
created('D31: first NOT NULL UNIQUE', 'create table t (a int, b int not null, c int not null, unique (a), unique key x (c, b), unique y (b)) engine=innodb');
created('D15: defaults', q{create table t (a int default 5, b varchar(9) default 'x,y)', c datetime default now() on update now(), d timestamp null default null, e bit(3) default 5, f enum('a','b') default 'b') engine=innodb});
created('D32: indexes', q{create table t (id bigint unsigned not null auto_increment, a varchar(30), b text, primary key (id), key (a), key k (a(3), id desc), unique u (a), fulltext (b)) engine=innodb comment='it''s'});
created('D19: partitions', 'create table t (id int primary key, a int) engine=innodb partition by range (id) (partition p0 values less than (10) engine = innodb, partition p1 values less than maxvalue)');
created('D32: foreign keys', 'create table t (id int primary key, a int references p (x), b varchar(10), constraint f foreign key (a) references p (x) on delete cascade, foreign key (b) references p (y) on update cascade) engine=innodb',
	make => [$parent]);
created('D32: foreign keys', 'create table t (id int primary key, a int, b varchar(10), constraint f foreign key (a) references p (x) on delete cascade, foreign key (b) references p (y) on update cascade) engine=innodb', make => [$parent]);
created('M3: charset binary', q{create table t (a varchar(10) default 'x', b text, c char(3) charset latin1, d enum('p','q'), e int unsigned) engine=innodb charset=binary});
created('D21: versioned', 'create table t (id int primary key, a int without system versioning, s timestamp(6) generated always as row start invisible, e timestamp(6) generated always as row end invisible, period for system_time (s, e)) engine=innodb with system versioning',
	only => 'mariadb');
created('D22: versioned, without columns for it', 'create table t (id int, a int, unique (id)) engine=innodb with system versioning', only => 'mariadb');
created('D3: as mysqldump writes it',
	"create table `t` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  `a` varchar(5) COLLATE utf8mb4_bin DEFAULT NULL /* c */,\n  PRIMARY KEY (`id`) USING BTREE,\n  KEY `a` (`a`) /*!80000 INVISIBLE */\n"
	  . ") ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin PACK_KEYS=1 STATS_PERSISTENT=0 MAX_ROWS=1000 COMMENT='c'");

# ------------------------------------------------------------------ all of them

is(join("\n", @refused), '', 'the server takes all statements');
my @cases = $reader->cases;
is(scalar(@cases), scalar(@titles), 'all statements were read');
for my $i (0 .. $#cases)
{
	my ($case, $title) = ($cases[$i], $titles[$i]);
	my $created = "$title->{title}" . ($case->{statement} eq '' ? '' : ' (the table before it)');
	is($case->{created_flags} . "\n" . $case->{got_before}, "\n$case->{before}", $created)
	  if $case->{statement} eq '' || $case->{got_before} ne $case->{before} || $case->{created_flags} ne '';
	next if $case->{statement} eq '';
	my $flags = ($title->{moves} ? ' moves' : '') . ($title->{key} ? ' key' : '');
	is("$case->{flags}\n$case->{got}", "$flags\n$case->{after}", $title->{title});
}
cmp_ok(scalar(@cases), '>', 250, 'so many statements');
done_testing();
